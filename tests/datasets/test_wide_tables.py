"""Time is linear in the number of columns."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from multilab.datasets import Dataset, DatasetError, read
from multilab.datasets.encode import impute
from multilab.datasets.profiling import _leaks
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import RawTable


def cpu_seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def assert_linear(prepare, small: int, large: int) -> None:
    """Assert that the time of the function that ``prepare(columns)`` returns grows less than halfway to quadratic."""
    work = prepare(small)
    seconds = min(cpu_seconds(work) for _ in range(3)), cpu_seconds(prepare(large))
    assert seconds[1] < (large / small) ** 1.5 * max(seconds[0], 0.002), f"{seconds} s of {small}, {large} columns"


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_parquet(text, tmp_path):
    pytest.importorskip("pyarrow")

    def prepare(columns):
        values = [["u", "v"]] if text else [[1.5, 2.5]]
        features = pd.DataFrame(dict(zip((f"f_{j}" for j in range(columns)), values * columns, strict=True)))
        labels = pd.DataFrame(np.eye(2, columns // 2, dtype=int)).add_prefix("lab_")
        path = tmp_path / f"{columns}.parquet"
        pd.concat([features, labels], axis=1).to_parquet(path)
        drop = [f"f_{j}" for j in range(0, columns, 2)]
        return lambda: read(path, label_prefix="lab_", text="one_hot", drop=drop)

    assert_linear(prepare, 200, 4_000)


def test_imputation_of_nominal_features():
    def prepare(columns):
        names = [f"f_{j}" for j in range(columns)]
        nominal = tuple((name, j, j + 1) for j, name in enumerate(names))
        X = np.full((2, columns), [[1.0], [np.nan]])
        raw = RawData(X, np.eye(2, dtype=np.uint8), names, ["a", "b"], columns, columns, columns, nominal=nominal)
        return lambda: impute(raw)

    assert_linear(prepare, 1_000, 16_000)


def test_leaks_by_the_names_of_many_labels():
    def prepare(columns):
        features = pd.DataFrame(np.ones((2, columns)), columns=[f"f_{j}" for j in range(columns)])
        labels = pd.DataFrame(np.zeros((2, columns), np.uint8), columns=[f"lab_{j}" for j in range(columns)])
        return lambda: _leaks(RawTable(features, labels, ()))

    assert_linear(prepare, 1_000, 16_000)


def test_a_column_that_occurs_twice_among_many():
    frame = pd.DataFrame(np.ones((2, 5)), columns=["a", "b", "c", "b", "y"])
    with pytest.raises(DatasetError, match="column 'b' occurs twice"):
        Dataset.from_frame(frame, ["y"])
