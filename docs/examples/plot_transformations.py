"""
A label powerset needs few label sets
=====================================

Binary relevance predicts each label alone, a classifier chain passes the labels on from one classifier to the next, and
a label powerset predicts complete label sets as classes. The digits have ten label sets, each of them frequent, and the
powerset is best by both metrics. The toy genes have many rare label sets, and it is worst.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from multilab import datasets, metrics, model_selection
from multilab.methods import BinaryRelevance, ClassifierChain, LabelPowerset

base = LogisticRegression(max_iter=500)
methods = {
    "binary relevance": BinaryRelevance(base),
    "classifier chain": ClassifierChain(base),
    "label powerset": LabelPowerset(base),
}

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, (name, step) in zip(axes, {"digit-segments": 4, "genes-toy": 1}.items(), strict=True):
    data = datasets.load(name)
    X, y = data.X[::step], data.Y[::step]
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    for (title, method), marker in zip(methods.items(), "os^", strict=True):
        values = []
        for train, test in model_selection.IterativeStratifiedKFold(3, random_state=0).split(X, y):
            predicted = method.fit(X[train], y[train]).predict(X[test])
            values.append((metrics.hamming_loss(y[test], predicted), metrics.subset_accuracy(y[test], predicted)))
        ax.plot(*np.mean(values, axis=0), marker, ms=9, color="black", mfc="white", label=title)
    ax.margins(0.15)
    ax.set(title=f"{name}: {len(np.unique(y, axis=0))} label sets", xlabel="Hamming loss (smaller is better)")
axes[0].set_ylabel("subset accuracy (larger is better)")
axes[0].legend(frameon=False)
plt.show()
