"""
One prediction, seven conventions
=================================

Metrics with the same name differ between systems, because they settle ties and empty rows differently. Here a
classifier with coarse scores, which has many ties, is measured on the same rows under every convention of multilab.
"""

import matplotlib.pyplot as plt

from multilab import datasets, metrics, model_selection
from multilab.methods import MLkNN

data = datasets.load("topics-toy")
train, test = model_selection.splits("topics-toy", {"split": "official"})[0]
scores = MLkNN(k=5).fit(data.X[train], data.Y[train]).predict_proba(data.X[test]).round(1)

names = ("ranking_loss", "average_precision", "one_error", "macro_f1")
values = {p: metrics.score_all(data.Y[test], scores, conventions=p) for p in metrics.PRESETS}

fig, axes = plt.subplots(1, 4, figsize=(9.5, 3.2), sharey=True, layout="constrained")
for ax, name in zip(axes, names, strict=True):
    ax.barh(list(values), [v[name] for v in values.values()], color="0.55")
    for position, v in enumerate(values.values()):
        ax.text(0.01, position, f"{v[name]:.3f}", va="center", transform=ax.get_yaxis_transform())
    better = "smaller" if metrics.METRICS[name].direction == "min" else "larger"
    ax.set(title=metrics.METRICS[name].title, xlabel=f"{better} is better")
plt.show()
