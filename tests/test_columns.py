"""Column sets: further columns of a study, beside its own methods."""

from __future__ import annotations

import io
import json
import re

import pandas as pd
import pytest

from laboratory import Laboratory
from multilab.experiments.cells import Part, cell_for
from multilab.experiments.errors import ExperimentError
from multilab.experiments.running import build
from multilab.experiments.settings import load_method, load_study, names, study_from
from multilab.stages.plan import plan
from multilab.stages.stats import described

TUNE = {"n_trials": 2, "folds": 2, "metric": "ranking_loss"}
PART = Part("emotions", "digest of the data", "{}", 0, "digest of the rows")

pytestmark = pytest.mark.xdist_group("columns")  # one worker makes the study that they share


def study(columns, **changes):
    content = {"datasets": ["emotions", "scene"], "methods": ["mlknn", "mlwse_l1"], **changes}
    return study_from("test", {**content, "columns": columns})


def test_a_column_is_its_method_with_the_settings_of_the_study_and_of_its_set():
    own = {"methods": ["mlknn"], "set": {"k": 40, "s": 0.5}}
    found = study(
        {"wide": {"methods": ["mlknn", "ebr"], "settings": [{"methods": ["mlknn"], "set": {"k": 20}}]}},
        settings=[own],
    )
    assert found.methods == ("mlknn", "mlwse_l1")
    assert found.all_methods == ("mlknn", "mlwse_l1", "mlknn-wide", "ebr-wide")
    column = found.method("mlknn-wide")
    assert (column.name, column.title) == ("mlknn-wide", "ML-kNN (wide)")
    assert (column.params["k"], column.params["s"]) == (20, 0.5)
    assert found.method("mlknn").params["k"] == 40
    assert found.method("ebr-wide").params == load_method("ebr").params
    assert [found.base(name) for name in found.all_methods] == ["mlknn", "mlwse_l1", "mlknn", "ebr"]


def test_what_a_set_leaves_out_is_the_studys():
    found = study({"a": {}, "b": {"datasets": ["scene"], "tune": None}}, tune=TUNE)
    assert found.columns["a"].columns == {"mlknn-a": "mlknn", "mlwse_l1-a": "mlwse_l1"}
    assert found.datasets_of("mlknn-a") == found.datasets_of("mlknn") == ("emotions", "scene")
    assert found.datasets_of("mlknn-b") == ("scene",)
    assert found.tune_of("mlknn-a") == found.tune_of("mlknn") == TUNE
    assert found.tune_of("mlknn-b") is None


def test_a_column_is_the_cell_that_its_settings_are():
    found = study({"wide": {"settings": [{"set": {"k": 20}}], "methods": ["mlknn"]}, "tuned": {"tune": TUNE}})

    def key(name):
        return cell_for(PART, found.method(name), found).key

    other = study({}, settings=[{"methods": ["mlknn"], "set": {"k": 20}}])
    assert key("mlknn-wide") == cell_for(PART, other.method("mlknn"), other).key != key("mlknn")
    other = study({}, tune=TUNE)
    assert key("mlknn-tuned") == cell_for(PART, other.method("mlknn"), other).key != key("mlknn")
    tuned, plain = (cell_for(PART, found.method(name), found) for name in ("mlwse_l1-tuned", "mlwse_l1"))
    assert [read.key for read in tuned.reads] == [read.key for read in plain.reads]
    assert tuned.label == "mlwse_l1-tuned on emotions, split 0"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": {"methods": ["mlkn"]}}, "columns.x: no method is called 'mlkn'; did you mean 'mlknn'"),
        ({"x": {"datasets": ["scen"]}}, "columns.x: no dataset here is called 'scen'; did you mean 'scene'"),
        ({"x": {"method": ["mlknn"]}}, "columns.x: 'method' is not a setting of a column set; did you mean 'methods'"),
        ({"x@1": {}}, "columns.x@1: a column set is named by small letters"),
    ],
)
def test_a_wrong_column_set_is_one_clear_line(columns, message):
    with pytest.raises(ExperimentError, match=re.escape(message)) as caught:
        study(columns)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", names("study"))
def test_every_column_of_every_study_builds(name):
    found = load_study(name)
    assert len(set(found.all_methods)) == len(found.all_methods)
    for column in found.all_methods:
        for dataset in found.datasets_of(column):
            build(found.method(column, dataset))


def test_a_plan_has_a_run_per_column_with_the_yaml_it_depends_on():
    runs = plan([study({"tuned": {"methods": ["mlwse_l1"], "tune": TUNE}})])["runs"]
    asked = {"study": "test", "method": "mlwse_l1-tuned", "base": "mlwse_l1", "after": "base_scores"}
    assert runs["test-mlwse_l1-tuned"] == asked
    assert list(runs) == ["test-mlknn", "test-mlwse_l1", "test-mlwse_l1-tuned"]


def test_study_json_tells_the_studys_own_methods_from_the_others():
    found = described(study({"tuned": {"about": "why", "datasets": ["scene"], "tune": TUNE}}))
    assert list(found["methods"]) == ["mlknn", "mlwse_l1"]
    assert found["all_methods"] == ["mlknn", "mlwse_l1", "mlknn-tuned", "mlwse_l1-tuned"]
    told = {"name": "tuned", "about": "why", "methods": ["mlknn-tuned", "mlwse_l1-tuned"], "datasets": ("scene",)}
    more = {"settings": (), "tune": TUNE, "repeats": None, "beside": False}
    assert found["columns"] == {"tuned": told | more}
    assert found["method_titles"]["mlknn-tuned"] == "ML-kNN (tuned)"


COLUMNS = """
columns:
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
    """A laboratory whose quick study has two column sets and has run once."""
    made = Laboratory(tmp_path_factory.mktemp("lab"))
    made.study("quick", "digit-segments, scenario1", "mlknn, br")
    path = made.root / "conf/study/quick.yaml"
    path.write_text(path.read_text() + COLUMNS)
    made.run("multilab", "plan", "study=quick")
    made.first = made.repro()
    return made


def read(lab, name):
    text = (lab.root / "reports/quick" / name).read_text()
    return json.loads(text) if name.endswith(".json") else pd.read_csv(io.StringIO(text))


@pytest.mark.xdist_group("columns")
def test_every_column_is_a_stage_and_is_scored_on_its_datasets(lab):
    trained = {stage for stage in lab.first if stage.startswith("train@")}
    columns = ["mlknn", "br", "mlknn-wide", "br-wide", "mlknn-tuned", "mlwse_l1-tuned"]
    assert trained == {f"train@quick-{name}" for name in columns}
    scores = read(lab, "scores.csv")
    places = {name: set(rows["dataset"]) for name, rows in scores.groupby("method")}
    both, digits, one = {"digit-segments", "scenario1"}, {"digit-segments"}, {"scenario1"}
    assert places == dict(zip(columns, [both] * 2 + [digits] * 2 + [one] * 2, strict=True))
    keys = scores.groupby("method")["key"].agg(set)
    assert keys["br-wide"] < keys["br"]
    assert not (keys["mlknn-wide"] | keys["mlknn-tuned"]) & keys["mlknn"]


@pytest.mark.xdist_group("columns")
def test_each_set_is_compared_by_itself(lab):
    found = {name: read(lab, f"{name}.json") for name in ("statistics", "statistics-wide", "statistics-tuned")}
    assert {tuple(compared) for compared in found.values()} == {("hamming_loss", "macro_auc", "ranking_loss")}
    told = {name: (c["ranking_loss"]["methods"], c["ranking_loss"]["datasets"]) for name, c in found.items()}
    assert told == {
        "statistics": (["mlknn", "br"], ["digit-segments", "scenario1"]),
        "statistics-wide": (["mlknn-wide", "br-wide"], ["digit-segments"]),
        "statistics-tuned": (["mlknn-tuned", "mlwse_l1-tuned"], ["scenario1"]),
    }


@pytest.mark.xdist_group("columns")
def test_what_the_searches_chose_is_a_table(lab):
    tuned = read(lab, "tuned.csv")  # values are JSON; here all are numbers
    assert list(tuned.groupby(["method", "split"])["parameter"].agg(list)) == [["k", "s"]] * 2 + [["alpha", "beta"]] * 2
    keys = read(lab, "scores.csv").groupby(["method", "split"])["key"].first()
    for row in tuned.itertuples():
        folder = lab.root / ".cells" / keys[row.method, row.split]
        trials = pd.read_csv(folder / "trials.csv")
        best = trials[trials["hamming_loss"] == trials["hamming_loss"].min()]
        assert row.best == pytest.approx(best["hamming_loss"].iloc[0], abs=1e-12)
        assert row.value in best[row.parameter].tolist()
        assert row.tune_seconds == json.loads((folder / "record.json").read_text())["tune_seconds"]


@pytest.mark.xdist_group("columns")
def test_columns_are_shown_in_mlflow_and_recomputed_by_the_gate(lab):
    published = json.loads((lab.root / "results/quick/published.json").read_text())
    assert len(published["runs"]) == 2 * 2 + 2 + 2
    said = lab.run("multilab", "gate", "--study", "quick", "--sample", "100", "--seed", "0")
    assert "gate passed: 16 cells of quick recomputed" in said


@pytest.mark.xdist_group("columns")
def test_a_set_that_changes_or_goes_leaves_the_others_alone(lab):
    tail = ["evaluate@quick", "publish@quick", "stats@quick"]
    lab.edit("conf/study/quick.yaml", "n_trials: 2", "n_trials: 3")
    assert sorted(lab.repro()) == [*tail, "train@quick-mlknn-tuned", "train@quick-mlwse_l1-tuned"]
    before = (lab.root / "reports/quick/statistics.json").read_text()
    lab.study("quick", "digit-segments, scenario1", "mlknn, br")
    lab.run("multilab", "plan", "study=quick")
    assert sorted(lab.repro()) == ["base_scores@quick", *tail]  # only mlwse_l1-tuned read any
    left = {path.name for path in (lab.root / "reports/quick").glob("*.*")}
    assert not {"tuned.csv", "statistics-wide.json", "statistics-tuned.json"} & left
    assert (lab.root / "reports/quick/statistics.json").read_text() == before
