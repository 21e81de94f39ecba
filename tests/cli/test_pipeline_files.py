"""The pipeline files of the studies, and the programs that they run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from helpers.laboratory import CHECKOUT
from multilab.cli import main
from multilab.experiments.conf import names
from multilab.experiments.dvc_files import pipeline_path, pipeline_text
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
    import shutil

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
