"""
The number of neighbours of ML-kNN
==================================

ML-kNN turns the number of neighbours that have a label into a posterior probability. Few neighbours give coarse and
noisy scores; many blur local differences. The band is one standard deviation over the folds.
"""

import matplotlib.pyplot as plt
import numpy as np

from multilab import datasets, metrics, model_selection
from multilab.methods import MLkNN

data = datasets.load("genes-toy")
folds = model_selection.splits("genes-toy", {"kfold": 5, "stratify": 1, "seed": 0})
ks = [1, 2, 3, 5, 8, 12, 20, 30, 50, 80]
losses = np.array(
    [
        [
            metrics.ranking_loss(data.Y[test], MLkNN(k=k).fit(data.X[train], data.Y[train]).predict_proba(data.X[test]))
            for train, test in folds
        ]
        for k in ks
    ]
)

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
mean, std = losses.mean(axis=1), losses.std(axis=1, ddof=1)
ax.fill_between(ks, mean - std, mean + std, color="0.85")
ax.plot(ks, mean, "o-", color="black")
ax.set(xscale="log", xlabel="number of neighbours k", ylabel="ranking loss (smaller is better)")
ax.set_xticks(ks, [str(k) for k in ks])
ax.minorticks_off()
plt.show()
