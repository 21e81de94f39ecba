"""
Stratified folds keep the share of every label
==============================================

If rows are divided at random, some folds get many positive rows of the rarest label and others few. Iterative
stratification divides the positive rows of every label evenly, the rarest label first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from multilab import datasets
from multilab.model_selection import IterativeStratifiedKFold

data = datasets.load("topics-toy")
splitters = {
    "random": KFold(10, shuffle=True, random_state=0),
    "iterative stratification": IterativeStratifiedKFold(10, random_state=0),
}

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, (name, splitter) in zip(axes, splitters.items(), strict=True):
    shares = np.array([data.Y[test].mean(axis=0) for _, test in splitter.split(data.X, data.Y)])
    spread = shares - data.Y.mean(axis=0)
    ax.boxplot(100 * spread, tick_labels=[str(j) for j in range(data.Y.shape[1])], medianprops={"color": "black"})
    ax.axhline(0, color="0.6", lw=0.8)
    ax.set(title=f"{name}: standard deviation {100 * spread.std():.1f}", xlabel="label")
axes[0].set_ylabel("share in the fold minus share\nin the data (percentage points)")
plt.show()
