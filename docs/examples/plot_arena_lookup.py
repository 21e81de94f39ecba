"""
Which method on data like mine?
===============================

The arena has results of 60 methods on 30 data sets. Three numbers of your data find the sets that are most like it, and
the methods are ranked on these sets alone. Nothing is fitted. The first method is where a comparison on your own rows
should begin, not where it ends.
"""

import gzip
import json
from pathlib import Path

import matplotlib.pyplot as plt

from multilab.arena import DataProfile, leaderboard_means, nearest_sets, rank_methods

results = "reports/arena/leaderboard.json.gz"  # in the clone of the repository that contains this script
path = next(folder / results for folder in (Path.cwd(), *Path.cwd().parents) if (folder / results).is_file())
content = json.loads(gzip.decompress(path.read_bytes()))
profiles = {one["name"]: DataProfile(one["n"], one["d"], one["q"]) for one in content["sets"]}

# %%
# 3,000 rows of 2,000 features with 30 labels. The nearest sets and their distances:
mine = DataProfile(rows=3000, features=2000, labels=30)
nearest = dict(nearest_sets(mine, profiles, n_sets=5))
print({name: round(distance, 2) for name, distance in nearest.items()})

# %%
# Methods on these sets and on all, by macro F1; rank 1 is best.
means = leaderboard_means(content)
here, everywhere = (rank_methods(part, "macro_f1").table["rank"] for part in (means.on(list(nearest)), means))
best = here.nsmallest(10).index
titles = [content["methods"][name]["title"] for name in best]

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
ax.plot(everywhere[best], titles, "o", color="0.65", label=f"all {len(means.datasets)} sets")
ax.plot(here[best], titles, "D", color="black", label="the five nearest sets")
ax.invert_yaxis()
ax.set(xlabel=f"average rank of {len(here)} by macro F1", title="3,000 rows, 2,000 features, 30 labels", xlim=(0, None))
ax.legend(frameon=False)
plt.show()
