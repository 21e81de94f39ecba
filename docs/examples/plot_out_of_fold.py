"""
Why stacking reads out-of-fold scores
=====================================

Scores that a model gives to its own training rows look much better than those it gives to new rows. A meta-learner
fitted on them would trust the model that overfits most. Out-of-fold scores, in which every row is scored by a model
that has not seen it, look like the scores of new rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from multilab import datasets, model_selection
from multilab.methods import BinaryRelevance

data = datasets.load("genes-toy")
train, test = model_selection.splits("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})[0]
X, y = data.X[train], data.Y[train]
model = BinaryRelevance(DecisionTreeClassifier(min_samples_leaf=3, random_state=0))

folds = model_selection.IterativeStratifiedKFold(5, random_state=0)
scores = {
    "training rows, in-sample": (y, model.fit(X, y).predict_proba(X)),
    "training rows, out-of-fold": (y, cross_val_predict(model, X, y, cv=folds, method="predict_proba")),
    "test rows": (data.Y[test], model.predict_proba(data.X[test])),
}

fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for ax, (name, (truth, predicted)) in zip(axes, scores.items(), strict=True):
    predicted = np.asarray(predicted)
    for label, shade in ((0, "0.75"), (1, "0.25")):
        ax.hist(
            predicted[truth == label], bins=10, range=(0, 1), density=True, color=shade, alpha=0.8, label=f"y = {label}"
        )
    error = np.mean((predicted >= 0.5) != truth)
    ax.set(title=f"{name}\nHamming loss {error:.3f}", xlabel="score")
axes[0].set_ylabel("density")
axes[0].legend(frameon=False)
plt.show()
