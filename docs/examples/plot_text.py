"""
Text with tags: a model from one call
=====================================

Most multi-label tables have a column of free text and a column of tags. :class:`~multilab.AutoMultiLabel`
accepts them directly. TF-IDF with one linear support vector machine per label is the model to beat; its decisions at 0
miss many of the rare tags, which costs macro F1. The number of fits is limited here, so that the page is the same every
time; with ``time_limit=60`` it tries more.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from multilab import AutoMultiLabel
from multilab.metrics import macro_f1, per_label

# %%
# The reviews are made up: every tag has its own words, among many uninformative ones; some tags are rare.
tags, rng = np.array(["acting", "camera", "ending", "humour", "music", "plot"]), np.random.default_rng(0)
Y = rng.random((1600, len(tags))) < np.geomspace(0.4, 0.04, len(tags))
texts = []
for row in Y:
    words = [f"word{k}" for k in rng.zipf(1.3, 25) if k < 2000]
    words += [f"{tag}{rng.integers(12)}" for tag in tags[row] for _ in range(rng.integers(1, 4))]
    texts.append(" ".join(rng.permutation(words)))
table = pd.DataFrame({"review": texts, "tags": ["|".join(tags[row]) for row in Y]})
train, test, truth = table[:600], table[600:], Y[600:].astype(int)

model = AutoMultiLabel(time_limit=None, budget_fits=24, metric="macro_f1").fit(train, "tags")
print(model.leaderboard_["score"].head(6).round(3).to_string())

# %%
# The peer, on the same rows, and macro F1 of both on new ones.
peer = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LinearSVC())).fit(train["review"], Y[:600].astype(int))
decisions = {"TF-IDF and linear SVM": peer.predict(test["review"]), model.best_: model.predict(test)}
print({name: round(float(macro_f1(truth, one)), 3) for name, one in decisions.items()})

# %%
fig, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for k, ((name, one), shade) in enumerate(zip(decisions.items(), ("0.7", "0.2"), strict=True)):
    f1 = per_label(truth, decisions=one)["f1"]
    axes.bar(np.arange(len(tags)) + 0.4 * k - 0.2, f1, 0.38, color=shade, label=name)
names = [f"{tag}\n{share:.0%} of the rows" for tag, share in zip(tags, truth.mean(axis=0), strict=True)]
axes.set(xticks=np.arange(len(tags)), ylabel="F1 on new rows", title="Tags, the most frequent first", ylim=(0, 1.18))
axes.set_xticklabels(names, fontsize=8)
axes.legend(frameon=False, ncols=2, loc="upper center")
plt.show()
