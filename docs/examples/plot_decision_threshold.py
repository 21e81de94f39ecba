"""
The decision threshold depends on the metric and on the label
=============================================================

A label is predicted where its score is at least a threshold, 0.5 for probabilities. That is the right threshold for
Hamming loss if the scores are calibrated; a smaller one is better for F1, which rewards finding rare labels. The
ranking metrics do not depend on it.

The left figure varies one threshold for all labels and looks at the test rows. That shows the possible gain, but it is
not a way to choose a threshold. :class:`~multilab.decision.TunedThresholdClassifier` chooses on out-of-fold scores of
the training rows, here one threshold per label (right).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from multilab import datasets, metrics, model_selection
from multilab.decision import TunedThresholdClassifier
from multilab.methods import BinaryRelevance

data = datasets.load("genes-toy")
model = BinaryRelevance(LogisticRegression(max_iter=1000))
thresholds = np.linspace(0.05, 0.95, 37)
curves, chosen, gains = [], [], []
for train, test in model_selection.splits("genes-toy", {"kfold": 5, "stratify": 1, "seed": 0}):
    tuned = TunedThresholdClassifier(model, objective="macro_f1").fit(data.X[train], data.Y[train])
    scores, decisions = tuned.predict_with_scores(data.X[test])
    curves.append([metrics.score_all(data.Y[test], scores, threshold=t) for t in thresholds])
    chosen.append(tuned.thresholds_)
    gains.append([metrics.macro_f1(data.Y[test], d) for d in (scores >= 0.5, decisions)])

# %%
# Macro F1 on the test rows, mean over the folds: at 0.5, and with the tuned thresholds.
print("at 0.5: {:.3f}, tuned: {:.3f}".format(*np.mean(gains, axis=0)))

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, style in {"hamming_loss": "-", "micro_f1": "--", "macro_f1": ":"}.items():
    values = np.mean([[values[name] for values in fold] for fold in curves], axis=0)
    best = values.argmin() if metrics.METRICS[name].direction == "min" else values.argmax()
    left.plot(thresholds, values, style, color="black", label=metrics.METRICS[name].title)
    left.plot(thresholds[best], values[best], "o", color="black")
left.set(xlabel="one threshold for all labels", ylabel="value on the test rows", title="The best threshold by metric")
left.legend(frameon=False)
frequency = data.Y.mean(axis=0)
right.plot(np.tile(frequency, (len(chosen), 1)), np.clip(chosen, 0, 1), "o", color="0.6", markersize=4)
right.plot(frequency, np.mean(np.clip(chosen, 0, 1), axis=0), "o", color="black")
right.axhline(0.5, color="black", linewidth=0.8, linestyle="--")
right.set(xlabel="label frequency", ylabel="tuned threshold (grey: fold, black: mean)", title="Tuned for macro F1")
plt.show()
