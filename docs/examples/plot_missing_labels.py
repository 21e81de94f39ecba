"""
A label that was not observed is not a *no*
===========================================

Half of the training labels are hidden at random. If hidden labels count as absent, the scores become too small, and
decisions at 0.5 miss most labels. An estimator that learns from the observed labels alone keeps most of the quality.
Mark an unobserved label by NaN; nothing else changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from multilab import datasets, metrics, model_selection
from multilab.methods import BinaryRelevance

data = datasets.load("digit-segments")
train, test = model_selection.splits("digit-segments", {"kfold": 3, "stratify": 1, "seed": 0})[0]
model, rng = BinaryRelevance(LogisticRegression(max_iter=1000)), np.random.default_rng(0)
order = rng.random(data.Y[train].shape)  # a label is observed below the share: smaller shares are parts of larger ones
shares = [0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0]
results = {"unobserved (NaN)": [], "counted as absent (0)": []}
for share in shares:
    for values, hidden in zip(results.values(), (np.nan, 0.0), strict=True):
        y = np.where(order < share, data.Y[train], hidden)
        decisions = model.fit(data.X[train], y).predict(data.X[test])
        values.append(metrics.micro_f1(data.Y[test], decisions))

# %%
print({name: round(float(values[shares.index(0.5)]), 3) for name, values in results.items()})

# %%
fig, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for (name, values), style in zip(results.items(), ("o-", "s--"), strict=True):
    ax.plot(shares, values, style, color="black", label=name)
ax.set(xlabel="share of the training labels that is observed", ylabel="micro F1 on test rows", ylim=(0, 1))
ax.legend(frameon=False, loc="lower right", title="hidden labels are")
plt.show()
