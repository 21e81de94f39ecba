"""
Labels depend on each other
===========================

The labels of `digit-segments` are the lit segments of a seven-segment display, so their dependence is known
beforehand: a digit determines all seven at once. Correlations between label columns show it. Methods that predict each
label alone ignore this figure; classifier chains, label powersets and stacking use it.
"""

import matplotlib.pyplot as plt
import numpy as np

from multilab import datasets

data = datasets.load("digit-segments")
correlations = np.corrcoef(data.Y.T)

fig, ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
image = ax.imshow(correlations, cmap="RdBu_r", vmin=-1, vmax=1)
ax.set_xticks(range(len(data.label_names)), data.label_names)
ax.set_yticks(range(len(data.label_names)), data.label_names)
for (row, column), value in np.ndenumerate(correlations):
    ax.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if abs(value) > 0.6 else "black")
ax.set(title="Correlation of the labels", xlabel="segment", ylabel="segment")
fig.colorbar(image, ax=ax, label="correlation")
plt.show()

# %%
# The label cardinality, the mean number of labels of a row:

print(f"{data.Y.sum(axis=1).mean():.2f} of {data.Y.shape[1]} labels")
