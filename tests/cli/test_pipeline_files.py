"""The pipeline files of the studies, and the programs that they run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from helpers.laboratory import CHECKOUT
from multilab.cells.conf import names
from multilab.cells.errors import ExperimentError
from multilab.cli import main
from multilab.experiments.dvc_files import pipeline_path, pipeline_text, write_parameters
from multilab.experiments.study import load_study

STUDIES = names("study")


def common_content(study: str) -> dict:
    """Return the content of a pipeline file without what differs between studies."""
    path = pipeline_path(study)
    content = yaml.safe_load((CHECKOUT / path).read_text())
    assert content.pop("vars") == [{"study": study}]
    root = Path("../..") if path.parent != Path() else Path()
    for stage in content["stages"].values():
        assert Path(stage.pop("wdir", ".")) == root
    report = "" if path.parent != Path() else f"reports/{study}/"
    for plot, name in zip(content.pop("plots"), ("headline", "ranks", "folds"), strict=False):
        assert plot[name]["y"] == {f"{report}{name}.csv": "method"}
    assert content.pop("params") == [f"{report}params.json"]
    assert content.pop("metrics") == [f"{report}headline.json"]
    return content


@pytest.mark.parametrize("study", STUDIES)
def test_the_pipelines_differ_in_name_folder_parameters_and_plots_only(study):
    assert common_content(study) == common_content("quick")


@pytest.mark.parametrize("study", STUDIES)
def test_a_pipeline_is_what_new_study_writes(study, monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    assert pipeline_path(study).read_text() == pipeline_text(load_study(study))


def test_a_new_study_is_two_files(tmp_path, monkeypatch, capsys, checkout):
    shutil.copytree(checkout / "conf", tmp_path / "conf")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    assert main(["study", "new", "fresh-study"]) == 0
    printed = capsys.readouterr().out
    for path in ("conf/study/fresh-study.yaml", "reports/fresh-study/dvc.yaml"):
        assert (tmp_path / path).is_file()
        assert path in printed
    settings = (tmp_path / "conf/study/fresh-study.yaml").read_text()
    assert load_study("fresh-study").methods == ("mlknn", "mlkelm", "br")
    pipeline = tmp_path / "reports/fresh-study/dvc.yaml"
    pipeline.write_text(pipeline.read_text() + "  - own.csv:\n      x: a\n      y: b\n")
    (tmp_path / "conf/study/fresh-study.yaml").write_text(settings.replace("hamming_loss", "macro_f1"))
    assert main(["study", "new", "fresh-study"]) == 0
    text = pipeline.read_text()
    assert "fresh-study: mean macro_f1" in text
    assert text.endswith("  - own.csv:\n      x: a\n      y: b\n")
    assert "fresh-study" in (tmp_path / "conf/study/fresh-study.yaml").read_text()


PARAMETERS = Path("reports/small/params.json")
METHOD = Path("conf/method/small_knn.yaml")
GIT = ["git", "-c", "user.name=multilab", "-c", "user.email=multilab@example.org", "-c", "advice.detachedHead=false"]


def git(*argv):
    subprocess.run([*GIT, *argv], check=True, capture_output=True)


def edit(k):
    """Edit the YAML of the method."""
    METHOD.write_text(f"_target_: multilab.methods.neighbours.mlknn.MLkNN\nk: {k}\n")


def written():
    """Write ``params.json`` as the stage `keys` does, and return its value of k."""
    write_parameters(load_study("small"))
    return json.loads(PARAMETERS.read_text())["small_knn"]["k"]


def set_parameter(k):
    """Change ``params.json`` as `dvc exp run -S reports/small/params.json:small_knn.k=...` does."""
    pytest.importorskip("dvc")
    from dvc.utils.hydra import apply_overrides

    apply_overrides(PARAMETERS, [f"small_knn.k={k}"])


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with a study of one method, committed with k = 10, in the current folder."""
    folder = tmp_path / "repository"
    (folder / "conf" / "study").mkdir(parents=True)
    (folder / "conf" / "method").mkdir()
    monkeypatch.chdir(folder)
    Path("conf/study/small.yaml").write_text(
        "title: Small\ndatasets: [scenario1]\nmethods: [small_knn]\nmetrics: [hamming_loss]\n"
        "protocol: {kfold: 2, stratify: 1, seed: 0}\n"
    )
    Path(".gitignore").write_text("results/\n")
    edit(10)
    git("init", "-q")
    assert written() == 10
    git("add", "-A")
    git("commit", "-q", "-m", "k is 10")
    return folder


def test_a_setting_that_is_changed_in_params_json_is_refused_and_its_yaml_is_named(repository, tmp_path, monkeypatch):
    edit(4)
    assert written() == 4
    edit(10)
    assert written() == 10
    for change in (set_parameter, lambda k: PARAMETERS.write_text(PARAMETERS.read_text().replace("10", str(k)))):
        change(7)
        with pytest.raises(ExperimentError, match=METHOD.as_posix()):
            written()
        assert json.loads(PARAMETERS.read_text())["small_knn"]["k"] == 7
        PARAMETERS.unlink()
        assert written() == 10
    set_parameter(4)  # which the YAML had once
    with pytest.raises(ExperimentError):
        written()
    git("clone", "-q", str(repository), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    set_parameter(4)
    with pytest.raises(ExperimentError):
        written()


def test_edits_of_the_yaml_checkouts_and_applied_experiments_are_not_refused(repository):
    for k in (4, 5):  # the second on top of what is not committed
        edit(k)
        assert written() == k
    edit(6)
    git("commit", "-q", "-a", "-m", "k is 6, and params.json of k = 5")
    git("checkout", "-q", "-b", "other", "HEAD~1")
    assert written() == 10
    edit(3)
    assert written() == 3
    git("commit", "-q", "-a", "-m", "k is 3")
    shutil.rmtree("results", ignore_errors=True)  # as `make clean` does
    git("checkout", "-q", "-")
    assert written() == 6
    git("checkout", "-q", "other", "--", "conf", "reports")  # as `dvc exp apply` does
    assert written() == 3
    set_parameter(3)  # the value that it has
    assert written() == 3
    git("commit", "-q", "-a", "-m", "k is 3 here too")
    edit(8)
    git("stash", "-q")
    assert written() == 3
    git("stash", "pop", "-q")
    assert written() == 8
