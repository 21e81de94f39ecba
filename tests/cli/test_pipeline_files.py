"""The pipeline files of the studies and of the data sets."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from helpers.laboratory import CHECKOUT
from multilab import datasets
from multilab.cells.conf import names
from multilab.cells.environment import installed_version
from multilab.cells.errors import ExperimentError
from multilab.cli import main
from multilab.experiments.dvc_files import (
    DATA_PIPELINE,
    check_pinned_version,
    data_pipeline_text,
    pipeline_path,
    pipeline_text,
)
from multilab.experiments.study import load_study

STUDIES = names("study")
COMMITTED = [name for name in STUDIES if (CHECKOUT / pipeline_path(name)).is_file()]


@pytest.mark.parametrize("study", COMMITTED)
def test_a_pipeline_is_what_new_study_writes(study, monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    assert pipeline_path(study).read_text() == pipeline_text(load_study(study))
    assert DATA_PIPELINE.read_text() == data_pipeline_text(load_study(study))


def test_the_pipeline_of_the_data_has_every_set_that_can_be_had(monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    stages = yaml.safe_load(DATA_PIPELINE.read_text())["stages"]
    prepared = [
        name for stage, content in stages.items() if stage.startswith("preprocess") for name in content["foreach"]
    ]
    package = [
        card for card in map(datasets.card, datasets.cards()) if card.location.parent == CHECKOUT / "conf/dataset"
    ]
    assert sorted(prepared) == [card.name for card in package if card.available]
    private = [name for stage, content in stages.items() if "private" in stage for name in content["foreach"]]
    assert sorted(set(private)) == [card.name for card in package if card.private] == ["ccd"]
    for stage, content in stages.items():
        (out,) = content["do"]["outs"]
        options = next(iter(out.values())) if isinstance(out, dict) else {}
        assert options == ({"cache": False, "push": False} if "private" in stage else {})


@pytest.mark.parametrize("study", STUDIES)
def test_results_of_private_sets_are_in_packs_of_their_own(study, monkeypatch):
    monkeypatch.chdir(CHECKOUT)
    described = load_study(study)
    content = yaml.safe_load(pipeline_text(described))["stages"]
    outs = {
        path: options for stage in content.values() for out in stage.get("outs", []) for path, options in out.items()
    }
    private = any(datasets.card(name).private for name in described.datasets)
    kept = {path: options for path, options in outs.items() if path.endswith("-private.zip")}
    assert bool(kept) == private
    assert all(options["cache"] is False and options["push"] is False for options in kept.values())


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


def test_a_study_in_a_repository_of_its_own_depends_on_the_pinned_version_and_its_own_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("conf/method").mkdir(parents=True)
    Path("mine_for_dvc.py").write_text(
        "from multilab.methods import MLkNN\n\n\nclass Mine(MLkNN):\n    results_version = 1\n"
    )
    Path("conf/method/mine.yaml").write_text("_target_: mine_for_dvc.Mine\nk: 3\n")
    Path("data/own").mkdir(parents=True)
    shutil.copy(CHECKOUT / "conf/dataset/genes-toy.yaml", "data/own/my-genes.yaml")
    card = Path("data/own/my-genes.yaml")
    card.write_text(card.read_text().replace("name: genes-toy", "name: my-genes"))
    Path("conf/study").mkdir()
    Path("conf/study/own.yaml").write_text(
        "title: Own\ndatasets: [my-genes, digit-segments]\nmethods: [mine, mlknn]\nprotocol: kfold3\n"
        "metrics: [hamming_loss]\n"
    )
    assert main(["study", "new", "own"]) == 0
    version = installed_version("multilab")
    assert Path("requirements.txt").read_text() == f"multilab=={version}\n"
    train = yaml.safe_load(pipeline_path("own").read_text())["stages"]["train"]
    assert {"mine_for_dvc.py", "conf/method", "requirements.txt"} <= set(train["deps"])
    assert {path for param in train["params"] for path in param} == {"conf/study/own.yaml", "conf/method/mine.yaml"}
    data = yaml.safe_load(DATA_PIPELINE.read_text())["stages"]
    assert data["preprocess_my-genes"]["do"]["deps"] == ["data/own/${item}.yaml", "requirements.txt"]
    assert data["preprocess_generated"]["do"]["deps"] == ["requirements.txt"]
    check_pinned_version()
    Path("requirements.txt").write_text("multilab[lab] == 99.0  # pinned\n")
    with pytest.raises(ExperimentError, match=r"99\.0"):
        check_pinned_version()
    assert main(["study", "base-scores", "--study", "own"]) == 2


def hydra_text(value):
    """Return a value as `dvc exp run -S` takes it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{hydra_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(hydra_text, value)) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def leaves(content, at=""):
    """Yield the parameters of a file under the names that DVC lists."""
    for key, value in content.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


@pytest.mark.slow
def test_every_listed_parameter_can_be_set_by_dvc(tmp_path, monkeypatch):
    """A value that is set to itself leaves the settings; floats such as 1e-05 stay numbers."""
    pytest.importorskip("dvc")
    from dvc.utils.hydra import apply_overrides

    from multilab.core.settings import HydraLoader

    monkeypatch.chdir(tmp_path)
    shutil.copytree(CHECKOUT / "conf", "conf")
    stages = yaml.safe_load((CHECKOUT / "dvc.yaml").read_text())["stages"]
    files = [path for param in stages["train"]["params"] for path in param]
    listed = {path: yaml.load(Path(path).read_text(), HydraLoader) for path in files}
    every = [(path, name, value) for path, content in listed.items() for name, value in leaves(content)]
    for path, name, value in np.random.default_rng(0).permutation(np.array(every, dtype=object))[:150]:
        apply_overrides(path, [f"{name}={hydra_text(value)}"])
        assert yaml.load(Path(path).read_text(), HydraLoader) == listed[path], (path, name)
