"""The pipeline under DVC: an edit re-runs the stages that depend on it, and computes what it should."""

from __future__ import annotations

import csv
import functools
import hashlib
import http.server
import io
import json
import re
import shutil
import tempfile
import threading
import time
import zipfile

import numpy as np
import pytest
import yaml

from helpers.laboratory import Laboratory
from multilab.core import read_content, write_content

mlflow = pytest.importorskip("mlflow")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pipeline")]

PREPARED = ["preprocess_generated@scenario1", "preprocess_generated@scenario2"]
COMPUTED = ["base_scores", "train"]
TABLES = ["evaluate", "stats", "publish"]
MLKNN = "src/multilab/methods/neighbours/mlknn.py"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A laboratory whose quick study has run once, committed."""
    made = Laboratory(tmp_path_factory.mktemp("lab"))
    assert sorted(made.repro()) == sorted([*PREPARED, *COMPUTED, *TABLES])
    commit(made)
    return made


def after(lab, action):
    """Do something, run ``dvc repro``, and return the stages it ran and how many cells it made."""
    before = lab.cells()
    action()
    stages = lab.repro()
    now = lab.cells()
    assert all(now[key] == before[key] for key in before), "a finished cell was written again"
    return stages, len(now) - len(before)


def append(lab, path, text="\n# a remark\n"):
    file = lab.root / path
    file.write_text(file.read_text() + text)


def packs(lab):
    return {path.name: path.read_bytes() for path in (lab.root / "results" / "quick").iterdir()}


def test_nothing_changed_runs_nothing(lab):
    assert after(lab, lambda: None) == ([], 0)


def test_a_comment_computes_nothing_and_leaves_the_packs(lab):
    before = packs(lab)
    stages, cells = after(lab, lambda: append(lab, "src/multilab/methods/kernels.py"))
    assert (stages, cells) == (COMPUTED, 0)
    stages, cells = after(lab, lambda: append(lab, "conf/dataset/scenario1.yaml"))
    assert (stages, cells) == (PREPARED[:1], 0)
    assert packs(lab) == before


def test_dvc_says_what_an_edit_runs_before_it_runs(lab):
    commit(lab)
    lab.edit("conf/method/mlknn.yaml", "\nk: 10", "\nk: 7")
    try:
        status = json.loads(lab.run("dvc", "status", "--json", "dvc.yaml"))
        changed = {stage: str(what) for stage, what in status.items()}
        assert set(COMPUTED) <= set(changed)
        assert "conf/method/mlknn.yaml" in changed["train"]
        assert "Running stage 'train'" in lab.run("dvc", "repro", "--dry")
        difference = json.loads(lab.run("dvc", "params", "diff", "--json"))
        assert difference == {"conf/method/mlknn.yaml": {"k": {"old": 10, "new": 7, "diff": -3}}}
    finally:
        lab.edit("conf/method/mlknn.yaml", "\nk: 7", "\nk: 10")
    assert json.loads(lab.run("dvc", "status", "--json", "dvc.yaml")) == {}


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("data/prepared/scenario1/X.npy", "preprocess_generated@scenario1"),
        ("results/quick/train.zip", "train"),
        ("reports/quick/scores.csv.gz", "evaluate"),
        ("reports/quick/metrics.json", "stats"),
        ("src/multilab/statistics/ranks.py", "stats"),
        ("src/multilab/metrics/auc.py", "evaluate"),
        ("conf/study/quick.yaml", "train"),
        ("conf/protocol/kfold5.yaml", "train"),
    ],
)
def test_status_names_the_stage_of_an_edited_file(lab, path, stage):
    file = lab.root / path
    content = file.read_bytes()
    file.write_bytes(content + (b"\nnotes: other\n" if path.startswith("conf/study") else b"\n"))
    try:
        status = json.loads(lab.run("dvc", "status", "--json", "dvc.yaml", "data/dvc.yaml"))
        assert stage in {name.rpartition(":")[2] for name in status}
    finally:
        file.write_bytes(content)


def test_one_value_of_one_method_runs_that_method(lab):
    """Each stage prints one line."""
    before = lab.cells()
    lab.edit("conf/method/mlknn.yaml", "\nk: 10", "\nk: 7")
    try:
        printed = lab.run("dvc", "repro", "-q")
        stages = re.findall(r"^(base_scores|train|evaluate|stats) ", printed, re.MULTILINE)
        assert stages == ["base_scores", "train", "evaluate", "stats"]
        assert re.search(r"^train +12 cells, 8 reused, ", printed, re.MULTILINE)
        assert len(lab.cells()) - len(before) == 4
        again = lab.run("multilab", "study", "train", "--study", "quick", "--method", "mlknn")
        assert re.fullmatch(r"train mlknn +4 cells, 4 reused, \d+\.\d s\n", again)
    finally:  # and back again: the cells are there
        assert after(lab, lambda: lab.edit("conf/method/mlknn.yaml", "\nk: 7", "\nk: 10"))[1] == 0


def test_a_raised_version_of_one_method_runs_that_method(lab):
    original = (lab.root / MLKNN).read_text()
    head, rest = original.split("class MLkNN", 1)
    start, docstring, body = rest.split('"""', 2)

    def raise_it():
        raised = f'{start}"""{docstring}"""\n\n    results_version = 9\n{body}'
        (lab.root / MLKNN).write_text(f"{head}class MLkNN{raised}")

    stages, cells = after(lab, raise_it)
    assert (stages, cells) == ([*COMPUTED, *TABLES], 4)
    (lab.root / MLKNN).write_text(original)
    assert after(lab, lambda: None)[1] == 0


def test_a_new_setting_of_a_dataset_runs_its_cells_only(lab):
    def edit():
        card = lab.root / "conf/dataset/scenario2.yaml"
        lines = [line for line in card.read_text().splitlines() if not line.startswith(("expected:", "digest:"))]
        card.write_text("\n".join(lines).replace("seed: 0", "seed: 22") + "\n")

    stages, cells = after(lab, edit)
    assert stages == [PREPARED[1], *COMPUTED, *TABLES]
    assert cells == 2 * (2 + 3 * 2)


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
    assert (stages, cells) == ([*COMPUTED, *TABLES], 4)
    assert "throwaway" in (lab.root / "reports/quick/index.html").read_text()


def test_another_study_is_another_pipeline_and_runs_nothing_twice(lab):
    printed = lab.run("multilab", "study", "new", "mlwse-core")
    assert "reports/mlwse-core/dvc.yaml" in printed
    ran = lab.repro("reports/mlwse-core/dvc.yaml")
    assert ran == ["preprocess_generated@scenario3", *COMPUTED, *TABLES]
    assert after(lab, lambda: None) == ([], 0)
    assert lab.repro("reports/mlwse-core/dvc.yaml") == []
    assert lab.repro("-P") == []
    assert (lab.root / "reports/mlwse-core/dvc.lock").is_file()
    (lab.root / "reports/mlwse-core/dvc.yaml").unlink()


def test_the_lock_holds_data_packs_and_tables(lab):
    content = yaml.safe_load((lab.root / "dvc.lock").read_text())["stages"]
    outs = {entry["path"] for stage in content.values() for entry in stage.get("outs", [])}
    deps = {entry["path"] for stage in content.values() for entry in stage.get("deps", [])}
    assert {"results/quick/base_scores.zip", "results/quick/train.zip", "reports/quick/scores.csv.gz"} <= outs
    assert {"data/prepared/scenario1", "src/multilab/methods", "conf/method"} <= deps
    assert content["train"]["params"]["conf/method/mlknn.yaml"]["k"] == 10
    assert set(content) == {*COMPUTED, *TABLES}


def test_all_stages_run_by_force_leave_the_lock_and_the_measurements(lab):
    lab.repro()
    kept = ["dvc.lock", "data/dvc.lock", "reports/quick/measured.csv", "reports/quick/environment.json"]
    before = [(lab.root / path).read_bytes() for path in kept]
    assert sorted(lab.repro("--force")) == sorted([*PREPARED, *COMPUTED, *TABLES])
    assert [(lab.root / path).read_bytes() for path in kept] == before


def test_an_edited_or_missing_table_is_computed_again(lab):
    path = lab.root / "reports/quick/scores.csv.gz"
    scores = read_content(path)
    write_content(path, scores.replace(b",0.", b",0.9", 1))
    assert after(lab, lambda: None) == (["evaluate"], 0)
    assert read_content(path) == scores
    path.unlink()
    assert after(lab, lambda: None)[1] == 0
    assert read_content(path) == scores


def test_a_second_clone_pulls_results_and_computes_nothing_but_what_is_new(lab, tmp_path):
    commit(lab)
    lab.run("dvc", "remote", "add", "-f", "-d", "--local", "far", str(tmp_path / "far"))
    lab.run("dvc", "push", "-q")
    other = lab.clone(tmp_path / "clone")
    other.run("dvc", "remote", "add", "-d", "--local", "far", str(tmp_path / "far"))
    other.run("dvc", "pull", "-q")
    assert other.repro() == []
    assert other.cells() == {}
    other.run("multilab", "study", "publish", "--study", "quick")
    assert len(runs(other)) == len(runs(lab)) > 0
    other.run("multilab", "study", "report", "--study", "quick")
    assert (other.root / "reports/quick/index.html").is_file()
    assert other.run("git", "status", "--short") == ""
    (other.root / "conf/method/mlknn3.yaml").write_text("_target_: multilab.methods.MLkNN\nk: 3\n")
    names = json.loads((lab.root / "reports/quick/study.json").read_text())["methods"]
    other.study("quick", "scenario1, scenario2", ", ".join([*names, "mlknn3"]))
    measured = (other.root / "reports/quick/measured.csv").read_text()
    before = other.cells()
    other.repro()
    assert len(other.cells()) - len(before) == 4
    machine = "reports/quick/environment.json"
    assert (other.root / machine).read_bytes() == (lab.root / machine).read_bytes()
    assert (other.root / "reports/quick/measured.csv").read_text().startswith(measured)


def test_nothing_of_a_private_data_set_is_cached_or_pushed(tmp_path):
    """Its rows, what is made of them, and the predictions of its rows."""
    lab = Laboratory(tmp_path / "lab")
    append(lab, "conf/dataset/scenario1.yaml", "private: true\n")
    (lab.root / "dvc.yaml").unlink()
    (lab.root / "data/dvc.yaml").unlink()
    lab.run("multilab", "study", "new", "quick")
    lab.repro()
    commit(lab)
    lab.run("dvc", "remote", "add", "-d", "far", str(tmp_path / "far"))
    lab.run("dvc", "push", "-q")
    X, Y = (np.load(lab.root / f"data/prepared/scenario1/{name}.npy") for name in "XY")
    public = np.load(lab.root / "data/prepared/scenario2/X.npy")
    secrets = [X[5].tobytes(), Y[:40].tobytes(), X[:, 0].copy().tobytes()]
    with zipfile.ZipFile(lab.root / "results/quick/train-private.zip") as pack:
        assert len(pack.namelist()) == 6
        for name in pack.namelist():
            with zipfile.ZipFile(io.BytesIO(pack.read(name))) as cell:
                secrets.append(cell.read("arrays.npz"))
    kept = [
        path.read_bytes()
        for top in (lab.root / ".dvc/cache", tmp_path / "far")
        for path in top.rglob("*")
        if path.is_file()
    ]
    assert any(public[5].tobytes() in content for content in kept), "the public one is not there either"
    assert not any(secret in content for secret in secrets for content in kept)
    other = lab.clone(tmp_path / "clone")
    other.run("dvc", "remote", "add", "-d", "far", str(tmp_path / "far"))
    other.run("dvc", "pull", "-q")
    assert sorted(path.name for path in (other.root / "results/quick").iterdir()) == ["base_scores.zip", "train.zip"]


def test_files_of_a_data_set_are_fetched_tracked_pulled_and_restored(tmp_path):
    """From a stand-in for the address in the card; the second clone has the remote only."""
    rows = "".join(f"{i % 7},{i % 5},{i % 2},{i % 3 == 0:d}\n" for i in range(60))
    content = f"a,b,left,right\n{rows}".encode()
    served = tmp_path / "served" / "owner" / "sets" / ("a" * 40) / "tiny.csv"
    served.parent.mkdir(parents=True)
    served.write_bytes(content)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "served")
    lab = Laboratory(tmp_path / "lab")
    (lab.root / "conf/dataset/tiny.yaml").write_text(
        "title: Tiny\nreader: {format: csv, label_columns: [left, right]}\nfiles:\n"
        f"  - {{role: full, path: tiny/tiny.csv, bytes: {len(content)}, source: tiny.csv,\n"
        f"     sha256: '{hashlib.sha256(content).hexdigest()}',\n"
        f"     repository: https://github.com/owner/sets, commit: '{'a' * 40}'}}\n"
    )
    lab.study("quick", "tiny", "mlknn")
    lab.run("multilab", "study", "new", "quick")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        lab.env["MULTILAB_DOWNLOAD_BASE"] = f"http://127.0.0.1:{server.server_port}"
        assert lab.repro("data/dvc.yaml:preprocess@tiny") == ["fetch@tiny", "preprocess@tiny"]
        server.shutdown()
    lab.run("git", "add", "-A")
    lab.run("git", "commit", "-qm", "all")
    lab.run("dvc", "remote", "add", "-d", "far", str(tmp_path / "far"))
    lab.run("dvc", "push", "-q", "data/dvc.yaml:fetch@tiny")
    file = lab.root / "data/raw/tiny/tiny.csv"
    file.write_bytes(content.replace(b"1", b"2", 1))
    assert "fetch@tiny" in str(json.loads(lab.run("dvc", "status", "--json", "data/dvc.yaml")))
    lab.run("dvc", "checkout", "-q", "-f", "data/dvc.yaml:fetch@tiny")
    assert file.read_bytes() == content
    other = lab.clone(tmp_path / "clone")
    other.env["MULTILAB_DOWNLOAD_BASE"] = "http://127.0.0.1:9"
    other.run("dvc", "remote", "add", "-d", "far", str(tmp_path / "far"))
    other.run("dvc", "pull", "-q", "data/dvc.yaml:fetch@tiny")
    assert (other.root / "data/raw/tiny/tiny.csv").read_bytes() == content
    assert other.repro("data/dvc.yaml:preprocess@tiny") == ["preprocess@tiny"]
    assert (other.root / "data/prepared/tiny/X.npy").is_file()


def test_cells_of_a_report_that_are_nowhere_are_fitted_again(lab):
    before = (lab.root / "reports/quick/keys.csv").read_bytes()
    kept = packs(lab)
    for name in kept:
        (lab.root / "results/quick" / name).unlink()
    printed = lab.run(
        "multilab", "study", "train", "--study", "quick", "--method", "mlknn", MULTILAB_CELLS=str(lab.root / "other")
    )
    for name, content in kept.items():
        (lab.root / "results/quick" / name).write_bytes(content)
    assert f"4 cells of reports/quick are not in {lab.root / 'other'}; they are fitted again" in printed
    assert (lab.root / "reports/quick/keys.csv").read_bytes() == before


def active(lab, experiment="quick"):
    """Return the runs that are not deleted, superseded ones included."""
    with tempfile.TemporaryDirectory() as folder:  # a copy: MLflow keeps a database open that a test may replace
        shutil.copy(lab.root / "mlflow.db", folder)
        client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
        entry = client.get_experiment_by_name(experiment)
        return client.search_runs([entry.experiment_id], max_results=5000) if entry else []


def runs(lab, experiment="quick"):
    current = [run.info for run in active(lab, experiment) if run.data.tags["superseded"] == "false"]
    return sorted((info.run_id, info.status) for info in current)


def test_publishing_twice_changes_nothing_and_a_fresh_store_is_filled(lab):
    before = runs(lab)
    study = json.loads((lab.root / "reports/quick/study.json").read_text())
    methods, datasets = len(study["methods"]), len(study["datasets"])
    assert len(before) == methods * datasets
    assert {status for _, status in before} == {"FINISHED"}
    lab.run("multilab", "study", "publish", "--study", "quick")
    assert runs(lab) == before
    (lab.root / "mlflow.db").unlink()
    lab.run("multilab", "study", "publish", "--study", "quick")
    assert len(runs(lab)) == len(before)
    assert not set(runs(lab)) & set(before)
    assert lab.repro() == []


def test_what_a_killed_publication_left_is_removed(lab):
    lab.run("multilab", "study", "publish", "--study", "quick")
    before = runs(lab)
    mlflow.MlflowClient(f"sqlite:///{lab.root / 'mlflow.db'}").update_run(before[0][0], status="RUNNING")
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
    (lab.root / "conf/study/broken.yaml").unlink()
    (lab.root / "conf/method/broken.yaml").unlink()
    assert lab.repro() == []


def test_a_study_that_cannot_run_is_one_line(lab):
    wrong = {
        ("scenario1", "nothing_like_it"): "no method is called 'nothing_like_it'",
        ("pascal-voc07", "mlknn"): "conf/study/none.yaml: no data of pascal-voc07",
        ("", "mlknn"): "needs at least one dataset and one method",
    }
    for (data, methods), message in wrong.items():
        lab.study("none", data, methods)
        printed = lab.run("multilab", "study", "base-scores", "--study", "none", code=2)
        assert message in printed
        assert len(printed.strip().splitlines()) == 1
    (lab.root / "conf/study/none.yaml").unlink()


def plotted(plot: list[dict], method: str) -> list[tuple]:
    """Return, per revision, the values that a plot of DVC draws for a method."""
    (entry,) = plot
    rows = [row for row in entry["content"]["data"]["values"] if row["method"] == method]
    revisions = sorted({row["rev"] for row in rows})
    return [tuple(sorted(row.get("mean", row.get("value")) for row in rows if row["rev"] == rev)) for rev in revisions]


def test_a_variant_is_tried_by_dvc_exp_run(lab):
    commit(lab)
    before, shown = lab.cells(), set(runs(lab))
    output = lab.run("dvc", "exp", "run", "-S", "conf/method/mlknn.yaml:k=4")
    assert "Ran experiment" in output
    assert len(lab.cells()) - len(before) == 4
    assert "\nk: 4\n" in (lab.root / "conf/method/mlknn.yaml").read_text()
    shown_params = json.loads(lab.run("dvc", "params", "diff", "--json"))
    assert shown_params == {"conf/method/mlknn.yaml": {"k": {"old": 10, "new": 4, "diff": -6}}}
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
    header, *rows = csv.reader(lab.run("dvc", "exp", "show", "--only-changed", "--csv").splitlines())
    assert len(rows) >= 2
    assert "k" in header
    assert "mean" in header  # of all methods: the one metric that `dvc exp show` lists
    baseline = shown - set(runs(lab))  # of the parents and children that are current no more
    assert len({(run.info.run_id, run.info.status) for run in active(lab)} & baseline) == 2, (
        "the runs of k = 10 on two datasets are not kept"
    )
    lab.edit("conf/method/mlknn.yaml", "\nk: 4", "\nk: 10")
    lab.repro()


def commit(lab):
    """Commit everything, so that DVC can copy the repository, and return what is there before an experiment."""
    lab.run("git", "add", "-A")
    lab.run("git", "commit", "-qm", "all", "--allow-empty")
    return lab.cells(), set(runs(lab)), lab.run("git", "status", "--short")


def titles(lab):
    """Return the names of the runs that are current."""
    return {run.info.run_name for run in active(lab) if run.data.tags["superseded"] == "false"}


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
