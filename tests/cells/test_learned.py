"""Arrays that methods learn: stored beside a result without a place in its key."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from multilab.cells import learned
from multilab.cells.cell import Cell, split_refs
from multilab.cells.fit_costs import FLOOR_MB, Meter
from multilab.cells.learned import FILE, LEFT_OUT, axes_of, learned_file, read_learned
from multilab.cells.method import load_method
from multilab.cells.pipeline import MethodPipeline
from multilab.cells.running import estimator_of_cell, gather, run_cell
from multilab.cells.store import Store
from multilab.methods import IMLDF, MDDMSelector, MLkNN

REDUCED = load_method("kmddm").with_params({"reduce__n_components": 2})


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.random((80, 5))
    return X, (X[:, :3] + 0.1 * random.random((80, 3)) > 0.5).astype(np.uint8)


def cells(method):
    return [Cell("train", ref, method) for ref in split_refs("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})]


def test_a_cell_of_the_first_split_holds_what_its_method_learned_but_not_in_its_arrays(tmp_path):
    store, (first, second, _) = Store(tmp_path), cells(REDUCED)
    for cell in (first, second):
        assert run_cell(cell, store) is None
    part = gather(first, store)
    again = estimator_of_cell(first).fit(part.X_train, part.Y_train)
    kept = read_learned(store, first.key)
    assert list(kept) == ["reduce__coef_"]
    np.testing.assert_array_equal(kept["reduce__coef_"], again.learned("reduce__coef_"))
    assert set(store.arrays(first.key)) == {"scores", "decisions"}
    assert read_learned(store, second.key) == {}
    assert axes_of(again) == {"reduce__coef_": ("training row", "projection")}


def test_arrays_that_are_too_large_are_named_in_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "_MOST_BYTES", 100)
    store, cell = Store(tmp_path), cells(REDUCED)[0]
    assert run_cell(cell, store) is None
    assert not (store.path(cell.key) / FILE).exists()
    assert store.record(cell.key)[LEFT_OUT] == {"reduce__coef_": [200, 2]}


def test_projections_of_a_selector_are_those_of_the_rows_that_reach_it(rows, tmp_path):
    X, Y = rows
    model = MethodPipeline([("select", MDDMSelector(variant="proj")), ("classify", MLkNN(k=3))]).fit(X, Y)
    arrays = arrays_of(model, X, Y, tmp_path)
    components, scores = arrays["select__components_"], arrays["select__scores_"]
    np.testing.assert_allclose(components.T @ components, np.eye(3), atol=1e-12)
    cross = X.T @ (Y - Y.mean(axis=0))
    np.testing.assert_allclose(((components.T @ cross) ** 2).sum(), scores.sum())


def test_thresholds_of_regions_contain_the_rows_of_the_regions(rows, tmp_path):
    X, Y = rows
    forest = IMLDF(n_layers=2, n_forests=2, n_trees=5, n_interactions=4, early_stopping=False, random_state=0)
    model = MethodPipeline([("classifier", forest)]).fit(X, Y)
    arrays, regions = arrays_of(model, X, Y, tmp_path), model.classifier.regions_[0][0]
    above = np.where(np.isnan(arrays["region_above_"]), -np.inf, arrays["region_above_"])
    below = np.where(np.isnan(arrays["region_below_"]), np.inf, arrays["region_below_"])
    Z = X.astype(np.float32)[:, None]
    np.testing.assert_array_equal(((above < Z) & (below >= Z)).all(axis=2), regions.inside(Z[:, 0])[0])
    assert arrays["region_label_shares_"].shape == (len(regions), 3)


def arrays_of(model, X, Y, folder):
    files, noted = learned_file(model, X, Y, ())
    assert noted == {}
    (folder / FILE).write_bytes(files[FILE])
    return np.load(folder / FILE)


@pytest.mark.skipif(sys.platform != "linux", reason="other allocators keep what is freed")
def test_memory_that_earlier_work_has_freed_counts_again():
    def allocated():  # 40 MB in pieces that the allocator keeps when they are freed, because of the last one
        return [bytes(1000) for _ in range(40_000)]

    peaks = []
    for _ in range(2):
        with Meter() as meter:
            pieces, last = allocated(), bytes(1000)
        peaks.append(meter.peak_mb)
        del pieces
    del last
    assert peaks[0] > 35
    assert peaks[1] == pytest.approx(peaks[0], rel=0.1)
    with Meter() as meter:
        pass
    assert meter.peak_mb == FLOOR_MB
