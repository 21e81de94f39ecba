"""
A critical-difference diagram
=============================

Methods are ranked on each data set and their average ranks compared. Methods that a bar joins do not differ
significantly by the Nemenyi test. With three small data sets hardly any difference is significant, and the diagram
shows that.
"""

import matplotlib.pyplot as plt
import pandas as pd

from multilab import datasets, metrics, model_selection
from multilab.methods import ELM, RFPCT, KernelELM, MLkNN
from multilab.reports import cd_diagram
from multilab.statistics import compare_methods

methods = {
    "ML-kNN": MLkNN(),
    "ML-KELM": KernelELM(gamma=0.1),
    "ELM": ELM(random_state=0),
    "RF-PCT": RFPCT(n_estimators=20, random_state=0),
}
table = pd.DataFrame(columns=list(methods), dtype=float)
for name in ("genes-toy", "topics-toy", "digit-segments"):
    data = datasets.load(name)
    for train, test in model_selection.splits(name, {"kfold": 3, "stratify": 1, "seed": 0})[:1]:
        for title, method in methods.items():
            X_train, X_test = data.X[train], data.X[test]
            predicted = method.fit(X_train, data.Y[train]).predict(X_test)
            table.loc[name, title] = metrics.hamming_loss(data.Y[test], predicted)
print(table.round(4))

# %%
# All numbers of the diagram come from the one comparison that is printed here.

comparison = compare_methods(table, "min", metric="Hamming loss")
print("average ranks", {name: round(rank, 2) for name, rank in comparison.ranks.items()})
print(f"critical difference {comparison.cd_nemenyi:.2f}")

fig, ax = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
cd_diagram(comparison, ax)
plt.show()
