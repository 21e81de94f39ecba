"""Work is linear in the number of columns, and that of Python does not grow with the rows of a sparse file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from helpers.readers_samples import content
from helpers.work import steps
from multilab.datasets import Dataset, DatasetError, TableEncoder, profile_table, read
from multilab.datasets.raw_data import RawData


def assert_linear(prepare, small: int, large: int) -> None:
    """Assert that the steps of the function that ``prepare(columns)`` returns grow as the columns do."""
    prepare(small)()
    assert steps(prepare(large)) < 1.2 * large / small * steps(prepare(small))


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
        return lambda: read(path, label_prefix="lab_", drop=drop)

    assert_linear(prepare, 100, 400)


@pytest.mark.slow
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_encoder_of_missing_values(text):
    def prepare(columns):
        cells = ["u", "v", None] if text else [1.0, 2.0, None]
        frame = pd.DataFrame({f"f_{j}": cells for j in range(columns)}).assign(y=[0, 1, 1])
        data = Dataset.from_frame(frame, ["y"])
        return lambda: TableEncoder.learn(data.X, data.kinds).encode(data.X)

    assert_linear(prepare, 100, 400)


def test_profile_of_many_labels():
    def prepare(columns):
        names = [f"f_{j}" for j in range(columns)], [f"lab_{j}" for j in range(columns)]
        raw = RawData(np.ones((2, columns)), np.zeros((2, columns), np.uint8), *names, columns)
        return lambda: profile_table(raw)

    assert_linear(prepare, 100, 400)


@pytest.mark.parametrize("n_columns", [40, 400])
def test_rows_of_a_sparse_file_are_not_read_one_by_one(n_columns, tmp_path):
    def prepare(rows):
        head = "".join(f"@attribute f_{j} numeric\n" for j in range(n_columns))
        body = "".join(f"{{{j % n_columns} 1.5, {n_columns} {j % 2}}}\n" for j in range(rows))
        path = tmp_path / f"{rows}.arff"
        path.write_text(f"@relation r\n{head}@attribute l {{0,1}}\n@data\n{body}")
        return lambda: content(path, labels_last=1)

    prepare(10)()
    assert steps(prepare(3000)) < 1.2 * steps(prepare(300))


def test_a_column_that_occurs_twice_among_many():
    frame = pd.DataFrame(np.ones((2, 5)), columns=["a", "b", "c", "b", "y"])
    with pytest.raises(DatasetError, match="column 'b' occurs twice"):
        Dataset.from_frame(frame, ["y"])


@pytest.mark.parametrize("label", [7, " y"])
def test_labels_are_named_as_the_frame_names_them(label):
    frame = pd.DataFrame(np.arange(12.0).reshape(3, 4)).assign(y=[0, 1, 1]).rename(columns={"y": label})
    data = Dataset.from_frame(frame, [label])
    assert (data.feature_names, data.label_names) == (["0", "1", "2", "3"], [str(label).strip()])
    assert data.Y.tolist() == [[0], [1], [1]]
