"""Write the user's tables: stations.csv, tones.arff, the dataset flats of two files, and the rows of rows/."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd

WORDS = ["river", "north", "field", "harbour", "dry", "old", "cold", "east", "garden", "stone"]
SIDES = {"train": ("north", "south", "west"), "test": ("east", "north")}
TONES = "@relation tones\n@attribute size numeric\n@attribute rent numeric\n"
CARD = """name: flats
title: Flats
reader: {format: csv, label_columns: [sunny, large, dear]}
files:
  - {role: train, path: flats-train.csv}
  - {role: test, path: flats-test.csv}
licence: none
citation: none
notes: Made up.
"""

rng = np.random.default_rng(0)
n = 90
height, wind = rng.normal(300, 120, n).round(1), rng.gamma(2.0, 3.0, n).round(2)
kind = rng.choice(["coast", "hill", "town", "valley"], n)
city = rng.integers(0, 18, n)
remark = [" ".join(rng.choice(WORDS, 5)) for _ in range(n)]
score = np.stack([wind - 5, (height - 300) / 100, (kind == "coast") - 0.4, [("cold" in text) - 0.4 for text in remark]])
labels = (score + rng.normal(0, 0.4, score.shape) > 0).astype(int).T

with Path("stations.csv").open("w", newline="") as file:  # text, a category, missing values, groups of rows
    table = csv.writer(file)
    table.writerow(["height", "wind", "kind", "remark", "city", "tag_rain", "tag_snow", "tag_sea", "tag_ice"])
    for i in range(n):
        shown = "" if i % 15 == 0 else wind[i]
        table.writerow([height[i], shown, kind[i], f"{remark[i]}, {kind[i]}", f"city {city[i]}", *labels[i]])

Path("data/own").mkdir(parents=True, exist_ok=True)
Path("data/own/flats.yaml").write_text(CARD)
for role, rows in (("train", range(60)), ("test", range(60, n))):  # categories that the other file lacks
    sides = SIDES[role]
    lines = [f"{height[i]},{wind[i]},{sides[i % len(sides)]},{','.join(map(str, labels[i, :3]))}" for i in rows]
    Path(f"data/own/flats-{role}.csv").write_text("\n".join(["size,rent,side,sunny,large,dear", *lines]) + "\n")

names = ("loud", "shrill", "dull", "soft")  # shrill and dull are kinds of loud and soft
head = TONES + "".join(f"@attribute {name} {{0,1}}\n" for name in names)
lines = [f"{height[i]},{wind[i]},{','.join(map(str, labels[i]))}" for i in range(n)]
Path("tones.arff").write_text(f"{head}@data\n% measured by hand\n" + "\n".join(lines) + "\n")
loud, soft = '<label name="loud"><label name="shrill"/></label>', '<label name="soft"><label name="dull"/></label>'
Path("tones.xml").write_text(f"<labels>{loud}{soft}</labels>\n")

Path("rows").mkdir(exist_ok=True)
features = pd.DataFrame({"height": height / 100, "wind": wind})
features.join(pd.DataFrame(labels, columns=[f"tag_{j}" for j in range(4)])).to_parquet("rows/part.parquet", index=False)
features.to_csv("new_rows.csv", index=False)
