"""
An embedding that depends on the labels
=======================================

Kernel MDDM, solved as a least-squares problem (LSkMDDM), embeds instances in a few dimensions whose dependence on the
labels is largest. The figure shows handwritten digits of the test set in the first two dimensions; the ten label
sets of the digits separate.
"""

import matplotlib.pyplot as plt
import numpy as np

from multilab import datasets, model_selection
from multilab.methods import LSKernelMDDM

data = datasets.load("digit-segments")
train, test = model_selection.splits("digit-segments", {"kfold": 5, "stratify": 1, "seed": 0})[0]
train, test = train[::2], test
reducer = LSKernelMDDM(n_components=2, eta=0.1).fit(data.X[train], data.Y[train])
points = reducer.transform(data.X[test])

label_sets, kinds = np.unique(data.Y[test], axis=0, return_inverse=True)
fig, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
for kind, labels in enumerate(label_sets):
    name = "".join(np.array(data.label_names)[labels == 1])
    ax.scatter(
        *points[kinds == kind].T, s=14, marker="os^vDPX*<>"[kind % 10], color=plt.cm.tab10(kind % 10), label=name
    )
ax.set(xlabel="dimension 1", ylabel="dimension 2", title="Test digits, by lit segments")
ax.legend(frameon=False, fontsize=8, ncols=2)
plt.show()
