"""What the study of selectors adds: feature curves, columns next to others, its settings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.multilabel_checks import make_data
from multilab.cells import MethodPipeline, running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build, load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.experiments.analyses import Unit
from multilab.experiments.study import load_study
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.metrics import score_all
from multilab.papers.lwmf import feature_curves, figures
from multilab.printed import find
from multilab.reports.data import load_report
from multilab.reports.tables.scores import score_table

SETTINGS = {"metrics": ["average_precision", "coverage"], "conventions": "matlab", "points": 4, "beyond": True}


def unit(method="lwmf", settings=SETTINGS, **arguments):
    part = SplitRef("toy", "0" * 64, "{}", 0, "1" * 64)
    chosen = {"select__n_features_to_select": 3, "classify__k": 5} if method != "mlknn" else {}
    cell = Cell("train", part, load_method(method).with_params(chosen | arguments))
    return Unit(feature_curves.__name__, "toy", 0, cell, None, settings)


@pytest.fixture
def inputs(monkeypatch):
    X, Y, X_test = make_data(n=80)
    made = Rows(X, Y.astype(np.uint8), X_test, Y[: len(X_test)].astype(np.uint8))
    monkeypatch.setattr(running, "scaled_rows", lambda cell, store: made)
    return made


def stored(made, store, inputs):
    """Put into the store what the unit's cell would be."""
    model = build(made.cell.method).fit(inputs.X_train, inputs.Y_train)
    names = made.cell.method.save_attributes
    arrays = {f"learned_{name}": np.asarray(MethodPipeline.of_fitted(model.steps, 1).learned(name)) for name in names}
    store.write(made.cell.key, arrays, {"key": made.cell.key, "status": "done"}, "")
    return model.named_steps["select"]


def test_a_point_of_a_curve_is_ml_knn_on_the_first_features(inputs, tmp_path):
    store, made = Store(tmp_path), unit()
    selector = stored(made, store, inputs)
    rows = pd.DataFrame({"method": "lwmf", "dataset": "toy", "split": 0, **feature_curves.compute(made, store)})
    curve = feature_curves.finish(rows)
    assert sorted(set(curve["features"])) == [2, 3, 4, 6, 8]
    assert set(curve.loc[curve["kept"], "features"]) == {3}
    for count, part in curve.groupby("features"):
        chosen = selector.ranking_ <= count
        scores = MLkNN(5).fit(inputs.X_train[:, chosen], inputs.Y_train).predict_proba(inputs.X_test[:, chosen])
        expected = score_all(inputs.Y_test, scores, conventions="matlab")
        assert dict(zip(part["metric"], part["value"], strict=True)) == {m: expected[m] for m in SETTINGS["metrics"]}


def test_a_curve_may_take_the_kept_features_by_column(inputs, tmp_path):
    store, made = Store(tmp_path), unit(settings=SETTINGS | {"order": "columns", "beyond": False})
    selector = stored(made, store, inputs)
    curve = pd.DataFrame(feature_curves.compute(made, store))
    kept = np.flatnonzero(selector.support_)
    assert sorted(set(curve["features"])) == [2, 3]
    for count, part in curve.groupby("features"):
        chosen = kept[:count]
        scores = MLkNN(5).fit(inputs.X_train[:, chosen], inputs.Y_train).predict_proba(inputs.X_test[:, chosen])
        expected = score_all(inputs.Y_test, scores, conventions="matlab")
        assert dict(zip(part["metric"], part["value"], strict=True)) == {m: expected[m] for m in SETTINGS["metrics"]}


def test_a_curve_may_end_where_the_selection_does():
    assert feature_curves.counts(100, 19, 4, True) == [19, 25, 50, 75, 100]
    assert feature_curves.counts(100, 60, 4, False) == [25, 50, 60]
    assert feature_curves.counts(2, 1, 20, True) == [1, 2]


def test_a_curve_follows_what_its_cell_stored():
    made = unit()
    assert made.identity["cell"] == made.cell.key
    assert made.key == unit().key
    assert made.key != replace(made, settings={**SETTINGS, "points": 5}).key
    assert made.key != unit(select__nn_space="raw").key


def test_a_curve_of_something_else_is_refused(inputs, tmp_path):
    for made in (unit("mlknn"), unit(classify__scale="minmax")):
        store = Store(tmp_path / made.key)
        if made.method != "mlknn":
            stored(made, store, inputs)
        else:
            store.write(made.cell.key, {"scores": np.zeros(1)}, {"key": made.cell.key, "status": "done"}, "")
        with pytest.raises(ExperimentError, match="select, classify with ML-kNN"):
            feature_curves.compute(made, store)


def rows(values):
    return pd.DataFrame(
        [(d, 0, m, "ranking_loss", v) for m, per_set in values.items() for d, v in zip("xyz", per_set, strict=True)],
        columns=["dataset", "split", "method", "metric", "value"],
    )


def curves(**heights):
    points = [
        (m, d, "average_precision", n, n == 20, 0.0 if h is None else h)
        for m, per_set in heights.items()
        for d, curve in zip("xy", per_set, strict=True)
        for n, h in zip((10, 20, 40), curve, strict=True)
        if h is not None
    ]
    columns = ["method", "dataset", "metric", "features", "kept", "value"]
    return pd.DataFrame(points, columns=columns)


CURVES = curves(a=[(0.5, 0.6, 0.8), (0.5, 0.4, 0.4)], b=[(0.4, 0.5, 0.9), (0.3, 0.5, 0.3)], c=[(0.1, 0.2, None)] * 2)


# ---- report


def test_every_column_has_its_kind_and_yeast_the_printed_sizes():
    study = load_study("lwmf")
    kinds = {name: study.kind_of(name) for name in study.all_methods}
    assert {name for name, kind in kinds.items() if kind == "as_printed"} == {
        *(set(find("lwmf").tables.aliases.names["method"].values()))
    }
    assert kinds["lwmf"] == kinds["lwmf-literal"] == kinds["mlknn-all"] == "fair"
    assert study.protocol_of("yeast") == {"split": "official", "train_size": 1499}
    assert study.repetitions_of("mlnb") == (5, True)
    assert study.repetitions_of("lwmf") == (5, False)


def test_extra_columns_are_in_the_tables_without_a_rank_and_may_be_best(tmp_path):
    content = {
        "sets": {"description": "", "methods": ["c-sets"], "show_with_main": True},
        "other": {"methods": ["b-other"]},
    }
    values = {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.1, 0.4], "c-sets": [0.05, 0.3, 0.1], "b-other": [0.1] * 3}
    rows(values).assign(key="").to_csv(tmp_path / "scores.csv.gz", index=False)
    (tmp_path / "study.json").write_text(json.dumps({"methods": ["a", "b"], "variants": content}))
    table = score_table(load_report(tmp_path), "ranking_loss")
    assert table.heads == ("a", "b", "c (sets)")
    cells = dict(table.rows)["x"]
    assert [(cell.text, cell.best) for cell in cells] == [
        ("0.1000", False),
        ("0.2000", False),
        ("0.0500", True),
    ]
    ((_, ranks),) = table.foot
    assert [cell.text for cell in ranks] == ["1.33", "1.67", "–"]


def test_an_area_is_the_mean_height():
    assert figures.curve_area(pd.Series([1.0, 3.0, 3.0], index=[0, 1, 5])) == pytest.approx(14 / 5)
    assert figures.curve_area(pd.Series([0.7], index=[9])) == 0.7


def test_curves_are_drawn_with_their_areas(tmp_path):
    rows({"a": [0.1] * 3, "b": [0.2] * 3}).assign(key="").to_csv(tmp_path / "scores.csv.gz", index=False)
    (figure,) = figures.feature_curves(load_report(tmp_path), CURVES)
    assert "Average precision over the number of features on x, y" in figure.alt
    assert figure.image.startswith("data:image/svg+xml")
    changed = CURVES.assign(value=CURVES["value"] + 0.01)
    (other,) = figures.feature_curves(load_report(tmp_path), changed)
    assert other.image != figure.image
