"""
How many features are needed?
=============================

Feature selectors rank the features by their relevance to the labels. The curve of a metric over the number of kept
features compares rankings, and the horizontal line, all features, says whether selection helps at all.
"""

import matplotlib.pyplot as plt
import numpy as np

from multilab import datasets, metrics, model_selection
from multilab.methods import LWMF, MDDMSelector, MLkNN

data = datasets.load("genes-toy")
folds = model_selection.splits("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})


def average_precision(columns, train, test):
    model = MLkNN().fit(data.X[np.ix_(train, columns)], data.Y[train])
    return metrics.average_precision(data.Y[test], model.predict_proba(data.X[np.ix_(test, columns)]))


counts = range(1, data.X.shape[1] + 1, 2)
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for selector, style in ((LWMF(), "o-"), (MDDMSelector(), "s--")):
    curves = []
    for train, test in folds:
        order = selector.fit(data.X[train], data.Y[train]).ranking_.argsort()
        curves.append([average_precision(order[:count], train, test) for count in counts])
    ax.plot(counts, np.mean(curves, axis=0), style, color="black", mfc="white", label=type(selector).__name__)
every = np.mean([average_precision(np.arange(data.X.shape[1]), train, test) for train, test in folds])
ax.axhline(every, color="0.6", label="all features")
ax.set(xlabel="number of features", ylabel="average precision (larger is better)")
ax.legend(frameon=False)
plt.show()
