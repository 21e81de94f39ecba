"""ML-kNN on real data: the printed rows of the ML-EKELM paper, and what other systems predict."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from multilab.datasets import load
from multilab.methods.neighbours.mlknn import MLkNN, one_hot_columns
from multilab.metrics import score_all

pytestmark = pytest.mark.data

FIVE = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")


@pytest.mark.parametrize(
    ("name", "k", "printed"),
    [
        ("yeast", 10, ".1980 .2345 6.4144 .1715 .7585"),
        ("scene", 10, ".0989 .2425 .5686 .0931 .8512"),
        ("yahoo-arts", 40, ".0593 .5503 4.8050 .1279 .5697"),
    ],
)
def test_rows_of_the_ml_ekelm_paper(benchmark_data: Path, name: str, k: int, printed: str) -> None:
    data = load(name)
    train, test = data.splits["official"]
    scores, decisions = MLkNN(k=k, s=1.0).fit(data.X[train], data.Y[train]).predict_with_scores(data.X[test])
    values = score_all(data.Y[test], scores, decisions, conventions="matlab")
    assert [f"{values[m]:.4f}" for m in FIVE] == [f"{float(p):.4f}" for p in printed.split()]


def peer(benchmark_data: Path, system: str, name: str) -> tuple[np.lib.npyio.NpzFile, list[dict[str, list[int]]]]:
    reference = benchmark_data.parent / "reference"
    file = reference / "predictions" / f"{system}__MLkNN__{name}.npz"
    if not file.is_file():
        pytest.skip(f"no reference predictions next to the data ({file.name})")
    folds = json.loads((reference / "folds" / f"{name}.json").read_text(encoding="utf-8"))["folds"]
    return np.load(file), folds


@pytest.mark.parametrize(
    ("system", "arguments"),
    [("mulan", {"scale": "minmax"}), ("scikit-multilearn-ng", {"exclude_self": False})],
)
def test_emotions_as_other_systems(benchmark_data: Path, system: str, arguments: dict[str, object]) -> None:
    expected, folds = peer(benchmark_data, system, "emotions")
    data = load("emotions")
    for fold in folds:
        train, test = np.array(fold["train"]), np.array(fold["test"])
        model = MLkNN(k=10, s=1.0, **arguments).fit(data.X[train], data.Y[train])
        scores, decisions = model.predict_with_scores(data.X[test])
        np.testing.assert_allclose(scores, expected["scores"][test], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(decisions, expected["bipartition"][test])


def test_flags_with_wekas_distance_on_nominal_features(benchmark_data: Path) -> None:
    """Weka counts a nominal mismatch as 1.

    In folds 1 and 2 the tenth and eleventh neighbour of some training row are equally far, and Weka's heap
    keeps another one than the lower row number.
    """
    expected, folds = peer(benchmark_data, "mulan", "flags")
    data = load("flags")
    nominal = one_hot_columns(data.feature_names)
    assert [len(columns) for columns in nominal] == [6, 4, 10, 8]
    for number in (0, 3, 4):
        train, test = np.array(folds[number]["train"]), np.array(folds[number]["test"])
        model = MLkNN(k=10, scale="minmax", nominal=nominal).fit(data.X[train], data.Y[train])
        scores, decisions = model.predict_with_scores(data.X[test])
        np.testing.assert_allclose(scores, expected["scores"][test], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(decisions, expected["bipartition"][test])


def test_flags_as_scikit_multilearn_but_for_its_order_among_ties(benchmark_data: Path, monkeypatch) -> None:
    """Flags has many equal distances (26 test rows tie at the tenth neighbour); scikit-learn's search leaves their
    order open. With its neighbours instead of our own everything else is equal to the last bit.
    """
    from sklearn.neighbors import NearestNeighbors

    from multilab.methods.neighbours import _search

    def neighbours(X_train, k, X=None, exclude_self=True, tie_tol=0.0, ordered=True):
        assert tie_tol == 0.0
        assert not exclude_self or X is not None
        distances, indices = NearestNeighbors(n_neighbors=k).fit(X_train).kneighbors(X_train if X is None else X)
        return indices, distances

    expected, folds = peer(benchmark_data, "scikit-multilearn-ng", "flags")
    data = load("flags")
    monkeypatch.setattr(_search, "exact_neighbours", neighbours)
    for fold in folds:
        train, test = np.array(fold["train"]), np.array(fold["test"])
        scores, decisions = (
            MLkNN(k=10, exclude_self=False).fit(data.X[train], data.Y[train]).predict_with_scores(data.X[test])
        )
        np.testing.assert_array_equal(scores, expected["scores"][test])
        np.testing.assert_array_equal(decisions, expected["bipartition"][test])
