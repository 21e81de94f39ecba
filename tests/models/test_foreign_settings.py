"""Settings of a champion from a registry name methods and classes of this machine only."""

from __future__ import annotations

import copy
import sys

import pytest

from helpers.models_for_use import fit_settings
from multilab.cells.conf import names, read_settings
from multilab.models import DeploymentError
from multilab.models.champions import settings_cells
from multilab.models.foreign_settings import trusted_settings

OWN = fit_settings("mlknn", dataset="genes-toy")
FUNCTION = {"_target_": "multilab.experiments.fit.fit_and_log", "settings": []}


def foreign(**mapping):
    return {**copy.deepcopy(OWN), "mapping": {"_target_": OWN["mapping"]["_target_"], **mapping}}


REFUSED = {
    "a file of base scores": foreign(base_scores=["/tmp/evil.yaml"]),
    "a file of base scores, relative": foreign(base_scores=["./evil.yaml"]),
    "base scores of no method": foreign(base_scores=["no_method"]),
    "base scores of members": foreign(member_params={"br": {"base_scores": ["evil.yaml"]}}),
    "base scores of a search": foreign(search={"base_scores": {"type": "categorical", "choices": [["evil.yaml"]]}}),
    "a function": foreign() | {"mapping": FUNCTION},
    "a function inside": foreign(k=FUNCTION),
    "a function in a list": foreign(k=[1, [FUNCTION]]),
    "a function of a search": foreign(search={"k": {"type": "categorical", "choices": [FUNCTION]}}),
    "a class that is not on the list": foreign(k={"_target_": "subprocess.Popen", "args": ["touch", "x"]}),
    "a class that reads a file": foreign(
        k={"_target_": "multilab.methods.PretrainedBinaryRelevance", "model_path": "/tmp/evil.ckpt"}
    ),
    "a class by name": foreign(k={"_target_": "hydra.utils.get_class", "path": "subprocess.Popen"}),
    "a function by name": foreign(k={"_target_": "hydra.utils.get_method", "path": "os.system"}),
    "a key of Hydra": foreign(_partial_=True),
    "arguments of Hydra": foreign(_args_=["x"]),
    "a target that is no text": foreign() | {"mapping": {"_target_": ["os.system"]}},
    "an environment variable": foreign(k="${oc.env:HOME}"),
    "an environment variable in a list": foreign(k=["${oc.env:HOME}"]),
    "a cache of a pipeline": foreign(
        k={"_target_": "sklearn.pipeline.Pipeline", "steps": [["a", "passthrough"]], "memory": "/tmp/evil"}
    ),
    "a cache in a search": foreign(search={"k__memory": {"type": "categorical", "choices": ["/tmp/evil"]}}),
    "an attribute of an attribute": foreign(save_attributes=["__class__.__init__"]),
    "no mapping": {**OWN, "mapping": None},
    "no method": {**OWN, "method": 5},
    "a search that is none": {**OWN, "tune": [1]},
}


@pytest.mark.parametrize("what", REFUSED)
def test_settings_that_name_something_else_are_refused(what):
    with pytest.raises(DeploymentError, match=r"^the champion [^\n]+$"):
        trusted_settings(REFUSED[what], OWN, "the champion (version 1)")


@pytest.mark.parametrize("name", names("method"))
def test_the_settings_of_every_method_of_this_machine_are_accepted(name):
    settings = {**OWN, "method": name, "mapping": read_settings("method", name)}
    accepted = trusted_settings(settings, OWN, "the champion (version 1)")
    rest = {key: value for key, value in settings["mapping"].items() if key != "requires"}
    assert accepted == {**settings, "mapping": rest}


def test_a_class_of_a_method_file_here_takes_no_text_that_no_file_here_has(tmp_path, monkeypatch):
    (tmp_path / "conf" / "method").mkdir(parents=True)
    (tmp_path / "conf" / "method" / "mine.yaml").write_text("_target_: my_code.Mine\nk: 3\nmode: fast\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    mine = {**OWN, "mapping": {"_target_": "my_code.Mine", "k": 7, "mode": "fast"}}
    assert trusted_settings(mine, OWN, "the champion")["mapping"]["k"] == 7
    mine["mapping"]["mode"] = "/tmp/evil"
    with pytest.raises(DeploymentError, match="/tmp/evil"):
        trusted_settings(mine, OWN, "the champion")


def test_accepted_settings_give_the_cells_of_the_method():
    settings = trusted_settings(OWN, OWN, "the champion")
    assert [cell.key for cell in settings_cells(settings)] == [cell.key for cell in settings_cells(OWN)]
