"""Variants: columns of a study in addition to its own methods."""

from __future__ import annotations

import io
import json
import re
import sqlite3

import pandas as pd
import pytest

from helpers.extras import skip_without_packages_of
from helpers.laboratory import Laboratory
from multilab.cells.cell import SplitRef
from multilab.cells.conf import names
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build, load_method
from multilab.cells.settings import Tuning
from multilab.core import read_content
from multilab.experiments.plan import cell_for, study_cells
from multilab.experiments.study import load_study, study_from
from multilab.experiments.study_results import described
from multilab.statistics.result_files import read_keys

TUNE = {"n_trials": 2, "folds": 2, "metric": "ranking_loss"}
PART = SplitRef("emotions", "digest of the data", "{}", 0, "digest of the rows")

pytestmark = pytest.mark.xdist_group("columns")  # one worker makes the study that they share


def study(variants, **changes):
    content = {"datasets": ["emotions", "scene"], "methods": ["mlknn", "mlwse_l1"], **changes}
    return study_from("test", {**content, "variants": variants})


def test_a_column_is_its_method_with_the_settings_of_the_study_and_of_its_variant():
    own = {"methods": ["mlknn"], "set": {"k": 40, "s": 0.5}}
    made = study(
        {"wide": {"methods": ["mlknn", "ebr"], "settings": [{"methods": ["mlknn"], "set": {"k": 20}}]}},
        settings=[own],
    )
    assert made.methods == ("mlknn", "mlwse_l1")
    assert made.all_methods == ("mlknn", "mlwse_l1", "mlknn-wide", "ebr-wide")
    column = made.method("mlknn-wide")
    assert (column.name, column.title) == ("mlknn-wide", "ML-kNN (wide)")
    assert (column.params["k"], column.params["s"]) == (20, 0.5)
    assert made.method("mlknn").params["k"] == 40
    assert made.method("ebr-wide").params == load_method("ebr").params
    assert [made.base(name) for name in made.all_methods] == ["mlknn", "mlwse_l1", "mlknn", "ebr"]


def test_a_study_may_replace_the_search_space_of_an_argument():
    space = {"k": {"type": "int", "low": 1, "high": 200, "log": True}}
    tuned = {"tuned": {"methods": ["mlknn"], "tune": TUNE}}
    own, wide = study(tuned), study(tuned, settings=[{"methods": ["mlknn"], "search": space}])
    assert wide.method("mlknn-tuned").search == {**load_method("mlknn").search, **space}
    assert wide.method("mlwse_l1").search == load_method("mlwse_l1").search
    keys = [[cell_for(PART, made.method(name), made).key for name in ("mlknn", "mlknn-tuned")] for made in (own, wide)]
    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]  # a space decides what is tuned, and nothing else


def test_settings_that_a_variant_omits_are_the_studys():
    made = study({"a": {}, "b": {"datasets": ["scene"], "tune": None}}, tune=TUNE)
    assert made.variants["a"].columns == {"mlknn-a": "mlknn", "mlwse_l1-a": "mlwse_l1"}
    assert made.datasets_of("mlknn-a") == made.datasets_of("mlknn") == ("emotions", "scene")
    assert made.datasets_of("mlknn-b") == ("scene",)
    assert made.tune_of("mlknn-a") == made.tune_of("mlknn") == Tuning(**TUNE)
    assert made.tune_of("mlknn-b") is None


def test_a_variant_may_have_the_first_splits_only():
    made = study({"few": {"methods": ["mlknn"], "splits": 2}})
    refs = [SplitRef(d, "data", "{}", split, f"{d}{split}") for d in ("emotions", "scene") for split in range(5)]
    cells = study_cells(made, "mlknn-few", refs)
    assert [(c.split_ref.dataset, c.split_ref.split) for c in cells] == [
        ("emotions", 0),
        ("emotions", 1),
        ("scene", 0),
        ("scene", 1),
    ]
    assert len(study_cells(made, "mlknn", refs)) == 10
    with pytest.raises(ExperimentError, match=r"variants.few.splits"):
        study({"few": {"splits": 0}})


def test_a_column_is_the_cell_that_its_settings_are():
    made = study({"wide": {"settings": [{"set": {"k": 20}}], "methods": ["mlknn"]}, "tuned": {"tune": TUNE}})

    def key(name):
        return cell_for(PART, made.method(name), made).key

    other = study({}, settings=[{"methods": ["mlknn"], "set": {"k": 20}}])
    assert key("mlknn-wide") == cell_for(PART, other.method("mlknn"), other).key != key("mlknn")
    other = study({}, tune=TUNE)
    assert key("mlknn-tuned") == cell_for(PART, other.method("mlknn"), other).key != key("mlknn")
    tuned, plain = (cell_for(PART, made.method(name), made) for name in ("mlwse_l1-tuned", "mlwse_l1"))
    assert [read.key for read in tuned.reads] == [read.key for read in plain.reads]
    assert tuned.label == "mlwse_l1-tuned on emotions, split 0"


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ({"x": {"methods": ["mlkn"]}}, "variants.x.methods: no method is called 'mlkn'; did you mean 'mlknn'"),
        ({"x": {"datasets": ["scen"]}}, "variants.x.datasets: no dataset here is called 'scen'; did you mean 'scene'"),
        ({"x": {"method": ["mlknn"]}}, "variants.x: unknown key 'method'; did you mean 'methods'"),
        ({"x": {"methods": "mlknn"}}, "variants.x.methods must be a list, got 'mlknn'"),
        (
            {"x": {"settings": [{"method": ["mlknn"], "set": {"k": 3}}]}},
            "variants.x.settings[0]: unknown key 'method'; did you mean 'methods'",
        ),
        ({"x@1": {}}, "variants.x@1.name must be lower-case letters, digits and _, got 'x@1'"),
    ],
)
def test_a_wrong_variant_is_one_clear_line(variants, message):
    with pytest.raises(ExperimentError, match=re.escape(message)) as caught:
        study(variants)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", names("study"))
def test_every_column_of_every_study_builds(name):
    skip_without_packages_of(name)
    loaded = load_study(name)
    assert len(set(loaded.all_methods)) == len(loaded.all_methods)
    for column in loaded.all_methods:
        built: list[object] = []
        for dataset in loaded.datasets_of(column):
            method = loaded.method(column, dataset)
            if method not in built:
                built.append(method)
                build(method)


def test_study_json_separates_the_studys_own_methods_from_the_others():
    record = described(study({"tuned": {"description": "why", "datasets": ["scene"], "tune": TUNE}}))
    assert list(record["methods"]) == ["mlknn", "mlwse_l1"]
    assert record["all_methods"] == ["mlknn", "mlwse_l1", "mlknn-tuned", "mlwse_l1-tuned"]
    variant = {
        "name": "tuned",
        "description": "why",
        "methods": ["mlknn-tuned", "mlwse_l1-tuned"],
        "datasets": ("scene",),
    }
    more = {"settings": (), "tune": Tuning(**TUNE).identity(), "repetitions": None, "show_with_main": False}
    assert record["variants"] == {"tuned": variant | more | {"kind": "ablation", "splits": None}}
    assert record["method_titles"]["mlknn-tuned"] == "ML-kNN (tuned)"


COLUMNS = """
variants:
  wide:
    methods: [mlknn, br]
    datasets: [digit-segments]
    settings:
      - {methods: [mlknn], set: {k: 20}}
  tuned:
    methods: [mlknn, mlwse_l1]
    datasets: [scenario1]
    tune: {n_trials: 2, folds: 2, metric: hamming_loss}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A laboratory whose quick study has two variants and has run once."""
    made = Laboratory(tmp_path_factory.mktemp("lab"))
    made.study("quick", "digit-segments, scenario1", "mlknn, br")
    path = made.root / "conf/study/quick.yaml"
    path.write_text(path.read_text() + COLUMNS)
    made.run("multilab", "study", "new", "quick")
    made.first = made.repro()
    return made


def read(lab, name):
    text = read_content(lab.root / "reports/quick" / name).decode()
    return json.loads(text) if ".json" in name else pd.read_csv(io.StringIO(text))


@pytest.mark.slow
def test_every_column_is_trained_and_scored_on_its_datasets(lab):
    assert "train" in lab.first
    columns = ["mlknn", "br", "mlknn-wide", "br-wide", "mlknn-tuned", "mlwse_l1-tuned"]
    scores = read(lab, "scores.csv.gz")
    assert list(dict.fromkeys(scores["method"])) == columns
    datasets = {name: set(rows["dataset"]) for name, rows in scores.groupby("method")}
    both, digits, one = {"digit-segments", "scenario1"}, {"digit-segments"}, {"scenario1"}
    assert datasets == dict(zip(columns, [both] * 2 + [digits] * 2 + [one] * 2, strict=True))
    assert "key" not in scores
    keys = read_keys(lab.root / "reports" / "quick").groupby("method")["key"].agg(set)
    assert keys["br-wide"] < keys["br"]
    assert not (keys["mlknn-wide"] | keys["mlknn-tuned"]) & keys["mlknn"]


@pytest.mark.slow
def test_each_variant_is_compared_by_itself(lab):
    statistics = {name: read(lab, f"{name}.json.gz") for name in ("statistics", "statistics-wide", "statistics-tuned")}
    assert {tuple(compared) for compared in statistics.values()} == {("hamming_loss", "macro_auc", "ranking_loss")}
    tables = {name: (c["ranking_loss"]["methods"], c["ranking_loss"]["datasets"]) for name, c in statistics.items()}
    assert tables == {
        "statistics": (["mlknn", "br"], ["digit-segments", "scenario1"]),
        "statistics-wide": (["mlknn-wide", "br-wide"], ["digit-segments"]),
        "statistics-tuned": (["mlknn-tuned", "mlwse_l1-tuned"], ["scenario1"]),
    }


@pytest.mark.slow
def test_what_the_searches_chose_is_a_table(lab):
    tuned = read(lab, "tuned.csv")  # values are JSON; here all are numbers
    assert list(tuned.groupby(["method", "split"])["parameter"].agg(list)) == [["k", "s"]] * 2 + [["alpha", "beta"]] * 2
    keys = read_keys(lab.root / "reports" / "quick").groupby(["method", "split"])["key"].first()
    for row in tuned.itertuples():
        (folder,) = (lab.root / ".cells").glob(f"{keys[row.method, row.split]}*")
        trials = pd.read_csv(folder / "trials.csv")
        best = trials[trials["hamming_loss"] == trials["hamming_loss"].min()]
        assert row.best == pytest.approx(best["hamming_loss"].iloc[0], abs=1e-12)
        assert row.value in best[row.parameter].tolist()
    measured = read(lab, "measured.csv").dropna(subset="tune_seconds")
    assert len(measured) == 4
    for row in measured.itertuples():
        (folder,) = (lab.root / ".cells").glob(f"{keys[row.method, row.split]}*")
        assert row.tune_seconds == json.loads((folder / "record.json").read_text())["tune_seconds"]


@pytest.mark.slow
def test_columns_are_shown_in_mlflow_and_recomputed_by_the_gate(lab):
    with sqlite3.connect(lab.root / "mlflow.db") as database:
        shown = database.execute("SELECT COUNT(*) FROM tags WHERE key = 'method'").fetchone()[0]
        ranked = database.execute(
            "SELECT DISTINCT t.value FROM metrics m JOIN tags t ON t.run_uuid = m.run_uuid "
            "WHERE t.key = 'method' AND m.key = 'rank'"
        ).fetchall()
    assert shown == 2 * 2 + 2 + 2, "a run per method and data set"
    assert sorted(ranked) == [("br",), ("mlknn",)], "columns of a variant are ranked with the study's own methods"
    output = lab.run("multilab", "gate", "--study", "quick", "--sample", "100", "--seed", "0")
    assert "gate passed: 16 cells of quick recomputed" in output


@pytest.mark.slow
def test_a_variant_that_changes_or_is_removed_leaves_the_others_unchanged(lab):
    every = ["base_scores", "evaluate", "publish", "stats", "train"]
    lab.edit("conf/study/quick.yaml", "n_trials: 2", "n_trials: 3")
    assert sorted(lab.repro()) == every
    before = read_content(lab.root / "reports/quick/statistics.json.gz")
    lab.study("quick", "digit-segments, scenario1", "mlknn, br")
    lab.run("multilab", "study", "new", "quick")  # what its stages write is in the pipeline
    assert sorted(lab.repro()) == every
    left = {path.name for path in (lab.root / "reports/quick").glob("*.*")}
    assert not {"tuned.csv", "statistics-wide.json.gz", "statistics-tuned.json.gz"} & left
    assert read_content(lab.root / "reports/quick/statistics.json.gz") == before
