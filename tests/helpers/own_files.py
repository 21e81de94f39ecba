"""A data file as a user has it: an identifier, holes, text, and labels by a prefix."""

from __future__ import annotations

import numpy as np
import pytest


def own_rows(n: int = 40) -> str:
    """Return a CSV of ``n`` rows: ``id``, two numbers of which one has holes, text with holes, two labels."""
    rng = np.random.default_rng(0)
    lines = ["id,a,b,colour,tag_x,tag_y"]
    for i in range(n):
        a, b = rng.normal(size=2)
        hole = "" if i % 9 == 0 else f"{b:.3f}"
        lines.append(f"{i},{a:.3f},{hole},{rng.choice(['red', 'blue', ''])},{int(a > 0)},{int(a + b > 0.5)}")
    return "\n".join(lines) + "\n"


def saved(frame, folder, kind):
    """Write a data frame as a file of a kind; return its path. Skip the test where a package is missing."""
    path = folder / f"set.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif kind == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif kind in ("json", "jsonl"):
        frame.to_json(path, orient="records", lines=kind == "jsonl")
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path
