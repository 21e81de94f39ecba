"""The pipeline under DVC: an edit re-runs exactly the stages and cells it should."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import time

import pytest
import yaml

from helpers.laboratory import Laboratory
from multilab.core import read_content, write_content
from multilab.experiments.receipts import STAGES

pytest.importorskip("hydra")

pytestmark = pytest.mark.xdist_group("pipeline")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A laboratory whose quick study has run once."""
    made = Laboratory(tmp_path_factory.mktemp("lab"))
    assert sorted(made.repro()) == sorted(STAGES)
    return made


def after(lab, action):
    """Do something, run ``dvc repro``, and return the stages it ran and how many cells it made."""
    before = lab.cells()
    action()
    stages = lab.repro()
    now = lab.cells()
    assert all(now[key] == before[key] for key in before), "a finished cell was written again"
    return sorted(stages), len(now) - len(before)


TAIL = ["evaluate", "publish", "stats", "train"]


def test_nothing_changed_runs_nothing(lab):
    assert after(lab, lambda: None) == ([], 0)


def test_a_comment_in_a_yaml_or_a_method_runs_nothing(lab):
    def edit():
        for path in ("conf/method/mlknn.yaml", "conf/dataset/scenario1.yaml", "src/multilab/methods/kernels.py"):
            file = lab.root / path
            file.write_text(file.read_text() + "\n# a remark\n")

    assert after(lab, edit) == ([], 0)


@pytest.mark.slow
def test_one_value_of_one_method_runs_that_method(lab):
    """It also prints one line per stage."""
    before = lab.cells()
    lab.edit("conf/method/mlknn.yaml", "\nk: 10", "\nk: 7")
    lines = [line for line in lab.run("dvc", "repro", "-q").splitlines() if " INFO " not in line]
    expected = ["keys .*", "train +12 cells, 8 reused, .* s", "evaluate .*", "stats .*", "MLflow .*"]
    assert len(lines) == len(expected), lines
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(expected, lines, strict=True)), lines
    assert len(lab.cells()) - len(before) == 4
    again = lab.run("multilab", "study", "train", "--study", "quick", "--method", "mlknn")
    assert re.fullmatch(r"train mlknn +4 cells, 4 reused, \d+\.\d s\n", again)
    # and back again: the cells are there
    assert after(lab, lambda: lab.edit("conf/method/mlknn.yaml", "\nk: 7", "\nk: 10"))[1] == 0


@pytest.mark.slow  # 14 s; that an edit moves the keys of its cells and no others is tested in test_cell_keys
def test_the_code_of_one_method_runs_that_method(lab):
    def edit():
        file = lab.root / "src/multilab/methods/neighbours/mlknn.py"
        file.write_text(file.read_text() + "\n_REMARK = 1\n")

    assert after(lab, edit) == (TAIL, 4)


@pytest.mark.slow
def test_a_shared_file_runs_every_method_that_depends_on_it(lab):
    def edit():
        file = lab.root / "src/multilab/methods/base.py"
        file.write_text(file.read_text() + "\n_REMARK = 1\n")

    stages, cells = after(lab, edit)
    assert stages == sorted(["analyses", "base_scores", *TAIL])
    # 4 parts: mlknn, mlwse_l1, and for br, cc and lp a train and a scores cell each (br's train cell serves both)
    assert cells == 4 * (2 + 3 * 2)


@pytest.mark.slow
def test_a_new_setting_of_a_dataset_runs_its_cells_only(lab):
    def edit():
        card = lab.root / "conf/dataset/scenario2.yaml"
        lines = [line for line in card.read_text().splitlines() if not line.startswith(("expected:", "digest:"))]
        card.write_text("\n".join(lines).replace("seed: 0", "seed: 22") + "\n")

    stages, cells = after(lab, edit)
    assert "preprocess" in stages
    assert "base_scores" in stages
    assert cells == 2 * (2 + 3 * 2)


@pytest.mark.slow
def test_a_new_metric_trains_nothing(lab):
    def edit():
        file = lab.root / "src/multilab/metrics/registry.py"
        file.write_text(file.read_text() + "\n_REMARK = 1\n")

    stages, cells = after(lab, edit)
    assert cells == 0
    assert stages == ["evaluate", "publish", "stats"]


@pytest.mark.slow
def test_a_new_method_is_two_files_and_runs_alone(lab):
    def add():
        (lab.root / "src/multilab/methods/neighbours/throwaway.py").write_text(
            "from multilab.methods.neighbours.mlknn import MLkNN\n\n\nclass ThrowAway(MLkNN):\n    '''A test.'''\n"
        )
        (lab.root / "conf/method/throwaway.yaml").write_text(
            "_target_: multilab.methods.neighbours.throwaway.ThrowAway\nk: 3\n"
        )
        lab.study("quick", "scenario1, scenario2", "mlknn, br, mlwse_l1, throwaway")

    stages, cells = after(lab, add)
    assert stages == TAIL
    assert cells == 4
    assert "throwaway" in (lab.root / "reports/quick/index.html").read_text()


@pytest.mark.slow
def test_another_study_is_another_pipeline_and_runs_nothing_twice(lab):
    printed = lab.run("multilab", "study", "new", "mlwse-core")
    assert "reports/mlwse-core/dvc.yaml" in printed
    assert sorted(lab.repro("reports/mlwse-core/dvc.yaml")) == sorted(STAGES)
    assert after(lab, lambda: None) == ([], 0)
    assert lab.repro("reports/mlwse-core/dvc.yaml") == []
    assert lab.repro("-P") == []
    assert (lab.root / "reports/mlwse-core/dvc.lock").is_file()
    (lab.root / "reports/mlwse-core/dvc.yaml").unlink()


def test_the_lock_holds_receipts_only(lab):
    content = yaml.safe_load((lab.root / "dvc.lock").read_text())["stages"]
    tracked = {
        entry["path"] for stage in content.values() for kind in ("deps", "outs") for entry in stage.get(kind, [])
    }
    assert tracked == {
        ".plan/quick",
        *(f".plan/quick/{stage}.keys" for stage in STAGES),
        *(f"results/quick/{stage}.json" for stage in STAGES),
    }
    assert not {word for stage in content.values() for word in stage if word in ("metrics", "plots")}


@pytest.mark.slow
def test_an_edited_or_missing_table_is_computed_again(lab):
    path = lab.root / "reports/quick/scores.csv.gz"
    scores = read_content(path)
    write_content(path, scores.replace(b",0.", b",0.9", 1))
    printed = lab.run("multilab", "study", "report", "--study", "quick")
    assert "reports/quick/scores.csv.gz is missing or was edited" in printed
    assert read_content(path) == scores
    path.unlink()
    assert after(lab, lambda: None) == (["analyses", "evaluate", "stats"], 0)
    assert read_content(path) == scores
    write_content(path, scores.replace(b",0.", b",0.9", 1))
    printed = lab.run("multilab", "study", "report", "--study", "quick", MULTILAB_CELLS="nothing", code=2)
    assert re.search(r"(\d+) of \1 cells of quick are not in", printed)
    assert "dvc repro` fits them" in printed
    assert len(printed.strip().splitlines()) == 2
    lab.repro()
    assert read_content(path) == scores
    page = lab.root / "reports/quick/index.html"
    page.unlink()
    assert after(lab, lambda: None) == (["stats"], 0)
    assert page.is_file()


@pytest.mark.slow
def test_results_are_adopted_if_their_cells_are_those_of_today(lab):
    shutil.rmtree(lab.root / "results")
    page = lab.root / "reports/quick/index.html"
    page.unlink()  # as in a fresh clone
    assert "7 stages" in lab.run("multilab", "study", "keys", "--study", "quick", "--adopt", MULTILAB_CELLS="nothing")
    assert page.is_file()
    assert (lab.root / "results/quick/publish.json").is_file()  # else `dvc commit` fails
    assert lab.repro() == ["publish"]  # its store of runs is not known any more
    lab.edit("conf/method/mlknn.yaml", "\nk: 10", "\nk: 6")
    printed = lab.run("multilab", "study", "keys", "--study", "quick", "--adopt", code=2)
    assert "reports/quick/keys.csv: 8 keys are not those of the current settings and code" in printed
    lab.edit("conf/method/mlknn.yaml", "\nk: 6", "\nk: 10")
    assert lab.repro() == []
    lab.edit("reports/quick/scores.csv.gz", "metric,value", "metric,values")
    printed = lab.run("multilab", "study", "keys", "--study", "quick", "--adopt", code=2)
    assert "scores.csv.gz is missing or was edited" in printed
    lab.repro()  # computes it again


def test_cells_of_a_report_that_are_not_in_the_store_are_fitted_again(lab):
    before = (lab.root / "reports/quick/keys.csv").read_bytes()
    printed = lab.run(
        "multilab", "study", "train", "--study", "quick", "--method", "mlknn", MULTILAB_CELLS=str(lab.root / "other")
    )
    assert f"4 cells of reports/quick are not in {lab.root / 'other'}; they are fitted again" in printed
    assert (lab.root / "reports/quick/keys.csv").read_bytes() == before


def runs(lab, experiment="quick"):
    with sqlite3.connect(lab.root / "mlflow.db") as database:
        return database.execute(
            "SELECT r.run_uuid, r.status FROM runs r JOIN experiments e ON r.experiment_id = e.experiment_id "
            "JOIN tags t ON t.run_uuid = r.run_uuid AND t.key = 'superseded' AND t.value = 'false' "
            "WHERE r.lifecycle_stage = 'active' AND e.name = ? ORDER BY 1",
            (experiment,),
        ).fetchall()


def active(lab):
    """Return the runs that are not deleted, superseded ones included."""
    with sqlite3.connect(lab.root / "mlflow.db") as database:
        return set(database.execute("SELECT run_uuid, status FROM runs WHERE lifecycle_stage = 'active'").fetchall())


@pytest.mark.slow
def test_publishing_twice_changes_nothing_and_a_fresh_store_is_filled(lab):
    before = runs(lab)
    study = json.loads((lab.root / "reports/quick/study.json").read_text())
    methods, datasets = len(study["methods"]), len(study["datasets"])
    assert len(before) == methods * datasets
    assert {status for _, status in before} == {"FINISHED"}
    lab.run("multilab", "study", "publish", "--study", "quick")
    assert runs(lab) == before
    (lab.root / "mlflow.db").unlink()
    assert lab.repro() == ["publish"]
    assert len(runs(lab)) == len(before)
    assert not set(runs(lab)) & set(before)
    assert lab.repro() == []


@pytest.mark.slow
def test_what_a_killed_publication_left_is_removed(lab):
    lab.run("multilab", "study", "publish", "--study", "quick")
    before = runs(lab)
    with sqlite3.connect(lab.root / "mlflow.db") as database:
        database.execute("UPDATE runs SET status = 'RUNNING' WHERE run_uuid = ?", (before[0][0],))
    lab.run("multilab", "study", "publish", "--study", "quick")
    now = runs(lab)
    assert len(now) == len(before)
    assert {status for _, status in now} == {"FINISHED"}
    assert before[0][0] not in {run for run, _ in now}


def test_a_failing_method_names_its_cells_and_harms_no_other(lab):
    (lab.root / "conf/method/broken.yaml").write_text("_target_: multilab.methods.neighbours.mlknn.MLkNN\nk: 100000\n")
    lab.study("broken", "scenario1", "broken, mlkelm")
    before = lab.cells()
    printed = lab.run("multilab", "study", "train", "--study", "broken", code=1)
    assert printed.count("failed: broken on scenario1") == 2
    assert "4 cells, 0 reused, 2 failed" in printed
    assert "Traceback" not in printed
    assert len(lab.cells()) - len(before) == 2
    assert lab.repro() == []
    (lab.root / "conf/study/broken.yaml").unlink()
    (lab.root / "conf/method/broken.yaml").unlink()


def test_a_study_that_cannot_run_is_one_line(lab):
    wrong = {
        ("scenario1", "nothing_like_it"): "no method is called 'nothing_like_it'",
        ("pascal-voc07", "mlknn"): "conf/study/none.yaml: no data of pascal-voc07",
        ("", "mlknn"): "needs at least one dataset and one method",
    }
    for (data, methods), message in wrong.items():
        lab.study("none", data, methods)
        printed = lab.run("multilab", "study", "keys", "--study", "none", code=2)
        assert message in printed
        assert len(printed.strip().splitlines()) == 1
    (lab.root / "conf/study/none.yaml").unlink()


def plotted(plot: list[dict], method: str) -> list[tuple]:
    """Return, per revision, the values that a plot of DVC draws for a method."""
    (entry,) = plot
    rows = [row for row in entry["content"]["data"]["values"] if row["method"] == method]
    revisions = sorted({row["rev"] for row in rows})
    return [tuple(sorted(row.get("mean", row.get("value")) for row in rows if row["rev"] == rev)) for rev in revisions]


@pytest.mark.slow
def test_a_variant_is_tried_by_dvc_exp_run(lab):
    lab.run("git", "add", "-A")
    lab.run("git", "commit", "-qm", "all")
    assert "reports/quick/metrics.json" in lab.run("git", "ls-files", "reports/quick")
    before, shown = lab.cells(), set(runs(lab))
    refused = lab.run("dvc", "exp", "run", "-S", "reports/quick/params.json:mlknn.k=4", code=255)
    assert "conf/method/mlknn.yaml" in refused
    assert (lab.cells(), set(runs(lab))) == (before, shown)
    lab.run("git", "reset", "-q", "--hard")
    output = lab.run("dvc", "exp", "run", "-S", "conf/method/mlknn.yaml:k=4")
    assert "Ran experiment" in output
    assert len(lab.cells()) - len(before) == 4
    assert "\nk: 4\n" in (lab.root / "conf/method/mlknn.yaml").read_text()
    shown_params = json.loads(lab.run("dvc", "params", "diff", "--json"))
    assert shown_params == {"reports/quick/params.json": {"mlknn.k": {"old": 10, "new": 4, "diff": -6}}}
    (of_leader,) = json.loads(lab.run("dvc", "metrics", "diff", "--json")).values()
    assert {"mean"} <= set(of_leader) <= {"best", "mean", "value"}  # one row per study: its leader
    every = lab.run("dvc", "metrics", "diff", "--json", "--targets", "reports/quick/metrics.json")
    (difference,) = json.loads(every).values()
    assert "hamming_loss.mlknn" in difference
    assert all(name.endswith(".mlknn") for name in difference)
    plots = json.loads(lab.run("dvc", "plots", "diff", "--json", "--targets", "dvc.yaml"))["data"]
    changed = {name for name in ("headline", "folds") if len(set(plotted(plots[name], "mlknn"))) == 2}
    assert changed == {"headline", "folds"}
    assert "ranks" in plots
    readable = ("--only-changed", "--drop", r"\.plan|results", "--csv")
    header, *rows = csv.reader(lab.run("dvc", "exp", "show", *readable).splitlines())
    shown_columns = [name for name in header if "." in name]
    assert len(rows) >= 2
    assert shown_columns == ["mlknn.k"]
    assert "mean" in header  # of all methods: the one metric that `dvc exp show` lists
    baseline = shown - set(runs(lab))  # of the parents and children that are current no more
    assert len(active(lab) & baseline) == 2, "the runs of k = 10 on two datasets are not kept"
    lab.edit("conf/method/mlknn.yaml", "\nk: 4", "\nk: 10")
    lab.repro()


def commit(lab):
    """Commit everything, so that DVC can copy the repository, and return what is there before an experiment."""
    lab.run("git", "add", "-A")
    lab.run("git", "commit", "-qm", "all", "--allow-empty")
    return lab.cells(), set(runs(lab)), lab.run("git", "status", "--short")


def titles(lab):
    """Return the names of the runs that are current."""
    with sqlite3.connect(lab.root / "mlflow.db") as database:
        names = dict(database.execute("SELECT run_uuid, name FROM runs").fetchall())
    return {names[run] for run, _ in runs(lab)}


@pytest.mark.slow
def test_an_experiment_in_a_temporary_folder_reuses_cells_and_leaves_its_runs(lab):
    before, shown, state = commit(lab)
    study = json.loads((lab.root / "reports/quick/study.json").read_text())
    total = 2 * len(study["methods"]) * len(study["datasets"])
    for repeated in (False, True):
        output = lab.run("dvc", "exp", "run", "--temp", "-f", "-n", "fewer", "-S", "conf/method/mlknn.yaml:k=3")
        reused = total if repeated else total - 4
        assert re.search(rf"train +{total} cells, {reused} reused", output), output
        assert len(lab.cells()) == len(before) + 4
        assert shown < set(runs(lab)), "runs of the repository are not current any more"
        new = {title for title in titles(lab) if "(fewer)" in title}
        assert new == {f"ML-kNN (fewer) on {name}" for name in ("scenario1", "scenario2")}
    assert lab.run("git", "status", "--short") == state
    after = set(runs(lab))
    lab.run("multilab", "study", "publish", "--study", "quick")
    assert set(runs(lab)) == after, "the study itself was published, and superseded the experiment"


@pytest.mark.slow
def test_queued_experiments_run_the_code_of_their_commit_in_the_store_of_the_repository(lab):
    before, shown, _ = commit(lab)
    lab.run("dvc", "exp", "run", "--queue", "-n", "five", "-S", "conf/method/mlknn.yaml:k=5")
    code = "src/multilab/methods/neighbours/mlknn.py"
    lab.edit(code, "from collections.abc", 'raise RuntimeError("edited after queueing")\nfrom collections.abc')
    try:
        lab.run("dvc", "queue", "start")
        deadline = time.monotonic() + 600
        while not re.search(r"five .*(Success|Failed)", status := lab.run("dvc", "queue", "status")):
            assert time.monotonic() < deadline, status
            time.sleep(1)
        assert "Success" in status, lab.run("dvc", "queue", "logs", "five")
    finally:
        lab.run("dvc", "queue", "stop", "--kill")
        lab.edit(code, 'raise RuntimeError("edited after queueing")\n', "")
    assert len(lab.cells()) == len(before) + 4
    assert shown < set(runs(lab))
    assert {"ML-kNN (five) on scenario1", "ML-kNN (five) on scenario2"} < titles(lab)


def test_the_page_is_rebuilt_from_the_committed_files_alone(lab, tmp_path):
    import shutil

    page = (lab.root / "reports/quick/index.html").read_bytes()
    shutil.copytree(lab.root / "reports", tmp_path / "reports")
    (tmp_path / "reports/quick/index.html").unlink()
    other = Laboratory.__new__(Laboratory)
    other.root, other.env = tmp_path, {**lab.env, "MULTILAB_CONF": str(lab.root / "conf")}
    other.run("multilab", "study", "report", "--study", "quick")
    assert (tmp_path / "reports/quick/index.html").read_bytes() == page
