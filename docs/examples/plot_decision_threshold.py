"""
The decision threshold depends on the metric
============================================

A label is predicted where its score is at least a threshold, 0.5 for probabilities. That is the right threshold for
Hamming loss if the scores are calibrated; a smaller one is better for F1, which rewards finding rare labels. The
ranking metrics do not depend on it.
"""

import matplotlib.pyplot as plt
import numpy as np

from multilab import datasets, metrics, model_selection
from multilab.methods import MLkNN

data = datasets.load("genes-toy")
thresholds = np.linspace(0.05, 0.95, 37)
folds = []
for train, test in model_selection.splits("genes-toy", {"kfold": 5, "stratify": 1, "seed": 0}):
    scores = MLkNN().fit(data.X[train], data.Y[train]).predict_proba(data.X[test])
    folds.append([metrics.score_all(data.Y[test], scores, threshold=t) for t in thresholds])

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, style in {"hamming_loss": "-", "micro_f1": "--", "macro_f1": ":"}.items():
    values = np.mean([[values[name] for values in fold] for fold in folds], axis=0)
    best = values.argmin() if metrics.METRICS[name].direction == "min" else values.argmax()
    ax.plot(thresholds, values, style, color="black", label=metrics.METRICS[name].title)
    ax.plot(thresholds[best], values[best], "o", color="black")
ax.set(xlabel="decision threshold", ylabel="value", title="The best threshold (dots) by metric")
ax.legend(frameon=False)
plt.show()
