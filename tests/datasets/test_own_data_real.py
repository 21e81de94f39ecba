"""A benchmark set as a plain CSV with text, holes and row numbers: added, it is the benchmark set but for the holes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.cli import main
from multilab.datasets import Dataset, encoder_of, fetch, load, read

pytestmark = [pytest.mark.data, pytest.mark.usefixtures("benchmark_data")]


def plain_table() -> pd.DataFrame:
    """Return Flags with texts for its categories, 15 holes in ``area``, row numbers, and ``has_`` before its labels."""
    arff, xml = (next(path for path in fetch("flags") if path.name == name) for name in ("flags.arff", "flags.xml"))
    flags = read(arff, labels_xml=xml)
    table = flags.X.copy()
    for name in table:
        if isinstance(table[name].dtype, pd.CategoricalDtype):
            table[name] = [f"{name} {category}" for category in table[name]]
    holes = np.random.default_rng(0).choice(len(table), 15, replace=False)
    table.loc[holes, "area"] = np.nan
    table.insert(0, "number", np.arange(1, len(table) + 1))
    return table.assign(**{f"has_{name}": flags.Y[:, k] == 1 for k, name in enumerate(flags.label_names)})


def test_a_benchmark_set_as_a_file_of_ones_own(tmp_path, monkeypatch, capsys):
    benchmark, table = load("flags"), plain_table()
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    table.to_csv("nations.csv", index=False)
    assert main(["datasets", "add", "nations.csv", "--label-prefix", "has_"]) == 0
    out = capsys.readouterr().out
    assert "rows       194\n" in out
    assert "category   landmass (6 values), zone (4 values), language (10 values), religion (8 values)\n" in out
    assert "missing    area (15 rows)\n" in out
    assert re.search(r"warning .*--drop.*: number\n", out)
    assert main(["datasets", "add", "nations.csv", "--label-prefix", "has_", "--drop", "number", "--force"]) == 0
    own = load("nations")
    np.testing.assert_array_equal(own.Y, benchmark.Y)
    assert own.label_names == [f"has_{name}" for name in benchmark.label_names]
    holes = table["area"].isna().to_numpy()
    for j, feature in enumerate(benchmark.feature_names):
        name, _, value = feature.partition("=")
        cells = own.X[name] == f"{name} {value}" if value else own.X[name]
        rows = ~holes if name == "area" else slice(None)
        np.testing.assert_array_equal(cells.to_numpy(dtype=float)[rows], benchmark.X[rows, j])
    assert {feature.partition("=")[0] for feature in benchmark.feature_names} == set(own.X)
    np.testing.assert_array_equal(own.X["area"].isna(), holes)
    encoder = encoder_of("nations")
    imputed = encoder.encode(own.X).X[holes, encoder.feature_names.index("area")]
    area = benchmark.feature_names.index("area")
    assert set(imputed) == {np.median(benchmark.X[~holes, area])}
    assert Dataset.from_frame(table, "has_*", drop="number").digest == own.digest
    assert Path("data/own/nations.csv").read_bytes() == Path("nations.csv").read_bytes()
