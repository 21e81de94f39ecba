"""
When do the weights of a stack become sparse?
=============================================

MLWSE-L1 combines the scores of several classifiers by a weight matrix with an L1 penalty. The largest useful penalty,
`alpha_max_`, sets all weights to zero; the settings printed in the paper lie far to the left, where no weight is
zero.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from multilab import datasets, metrics, model_selection
from multilab.methods import MLWSE, BinaryRelevance, ClassifierChain, MLkNN

data = datasets.load("genes-toy")
train, test = model_selection.splits("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})[0]
X, y = data.X[train], data.Y[train]
base = LogisticRegression(max_iter=500)
learners = [BinaryRelevance(base), ClassifierChain(base), MLkNN()]
folds = model_selection.IterativeStratifiedKFold(5, random_state=0)
inner = np.hstack([cross_val_predict(m, X, y, cv=folds, method="predict_proba") for m in learners])
outer = np.hstack([m.fit(X, y).predict_proba(data.X[test]) for m in learners])

alpha_max = MLWSE(penalty="l1", beta=0.001).fit(inner, y).alpha_max_
alphas = alpha_max * np.logspace(-5, 0, 21)
models = [MLWSE(penalty="l1", alpha=alpha, beta=0.001).fit(inner, y) for alpha in alphas]

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
zeros = [np.mean(m.W_ == 0) for m in models]
losses = [metrics.ranking_loss(data.Y[test], m.decision_function(outer)) for m in models]
ax.plot(alphas / alpha_max, zeros, "o-", color="black", label="share of zero weights")
ax.plot(alphas / alpha_max, losses, "s--", color="0.45", label="ranking loss")
ax.axvline(1e-4 / alpha_max, color="0.7", lw=1)
ax.text(1.2e-4 / alpha_max, 0.9, "paper", color="0.45")
ax.set(xscale="log", xlabel="penalty, as a share of the largest useful one", ylim=(-0.03, 1.03))
ax.legend(frameon=False, loc="center left")
plt.show()
