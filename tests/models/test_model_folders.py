"""Folders of models through every door: however they are named, whatever is planted in them or damaged."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import operator
import os
import pickle
import shutil
import sys
import zipfile

import cloudpickle
import mlflow
import numpy as np
import pytest

from multilab.cli import main
from multilab.datasets import DatasetError, TableEncoder
from multilab.methods import MLkNN
from multilab.models import DeploymentError, SavedModel, serving
from multilab.models.metadata import ModelMetadata
from multilab.models.model_card import model_card
from multilab.models.model_limits import prediction_warnings
from multilab.models.monitoring import monitor_rows
from multilab.models.registry import log_model, save_mlflow


@pytest.fixture(scope="module")
def packaged(model, tmp_path_factory):
    """Return the model as MLflow stores it: a folder with ``MLmodel`` and ``artifacts/model``."""
    return save_mlflow(model, tmp_path_factory.mktemp("mlflow") / "package")


@pytest.fixture
def served(monkeypatch):
    """Let `multilab serve` load the model, print its request and end; return the models that it would serve."""
    models = []

    class Server:
        def __init__(self, config):
            models.append(config.app.model)

        def run(self, sockets):
            pass

    monkeypatch.setattr(serving.uvicorn, "Server", Server)
    return models


def through_every_door(folder, csv, *, code):
    """Name a folder to every command that takes a model and assert the exit code of all."""
    for argv in (
        ["predict", folder, str(csv), "-o", "decisions.csv"],
        ["explain", folder, str(csv), "--label", "tag_a", "--repeats", "1"],
        ["monitor", folder, str(csv), "--level", "1e-9"],
        ["card", folder, "-o", "card.md"],
        ["serve", folder, "--port", "0"],
    ):
        assert main(argv) == code, argv


class Planted:
    """What creates a file when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch PLANTED",)


CODE = "open('PLANTED', 'w').close()\n_load_pyfunc = print\n"
CODE_FILES = ("code/planted_loader.py", "code/sitecustomize.py", "planted_loader.py", "model_code.py", "multilab.py")
FLAVOURS = {
    "loader": {"loader_module": "planted_loader", "code": "code", "data": ".", "env": {}},
    "pickle": {"loader_module": "mlflow.pyfunc.model", "python_model": "python_model.pkl", "env": {}},
}


def plant(folder, flavour):
    """Put a pickle, modules and an ``MLmodel`` that loads them into a folder, under the names that MLflow uses."""
    content = pickle.dumps(Planted())
    for name in ("python_model.pkl", "model.pkl", "model.joblib", "model.cloudpickle", "encoder.pkl"):
        (folder / name).write_bytes(content)
    (folder / "code").mkdir(exist_ok=True)
    for name in CODE_FILES:
        (folder / name).write_text(CODE)
    loader = FLAVOURS[flavour] | {"cloudpickle_version": cloudpickle.__version__}
    (folder / "MLmodel").write_text(json.dumps({"flavors": {"python_function": loader}}))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_nothing_that_is_planted_in_a_folder_is_executed(
    flavour, model, packaged, own_csv, tmp_path, monkeypatch, served, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    shutil.copytree(packaged, "evil")
    where = {"uri": f"sqlite:///{tmp_path / 'mlflow.db'}", "artifacts": str(tmp_path / "evil-registry")}
    logged = log_model(model, where, params={}, source=("local", "{}"), tags={})
    for top in ("evil", "evil-registry"):
        for folder in [tmp_path / top, *(path for path in (tmp_path / top).rglob("*") if path.is_dir())]:
            plant(folder, flavour)
    with monkeypatch.context() as context:
        context.setattr(sys, "path", list(sys.path))
        with contextlib.suppress(Exception):
            mlflow.pyfunc.load_model("evil")
        sys.modules.pop("planted_loader", None)
    os.unlink("PLANTED")  # what is planted works
    for folder in ("evil", "evil/artifacts/model", logged.uri):
        through_every_door(folder, own_csv, code=0)
    assert not os.path.exists("PLANTED")
    assert len(served) == 3
    assert all(type(one) is SavedModel for one in served)


NAMES = [
    "model",
    "./model",
    "model/",
    "../here/model",
    "link",
    "link/",
    "package",
    "package/",
    "package/artifacts/model",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_be_named_in_every_way(name, packaged, model_path, own_csv, tmp_path, monkeypatch, served):
    here = tmp_path / "here"
    here.mkdir()
    shutil.copytree(model_path, here / "model")
    shutil.copytree(packaged, here / "package")
    (here / "link").symlink_to("model")
    monkeypatch.chdir(here)
    through_every_door(name, own_csv, code=0)
    monkeypatch.chdir("model")
    through_every_door(".", own_csv, code=0)
    assert len(served) == 2


def object_array(path):
    """Put an array of Python objects, which NumPy would unpickle, into a skops file."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    stream = io.BytesIO()
    np.save(stream, np.array([Planted()], dtype=object), allow_pickle=True)
    files[next(name for name in files if name.endswith(".npy"))] = stream.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def brackets(path):
    path.write_text("[" * 100_000)


def edited(change):
    """Return a damage that changes the content of a JSON file."""

    def damage(path):
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return damage


def unsealed(change):
    """Return a change of metadata that were written before they had a digest."""
    return edited(lambda content: (content.pop("sha256"), change(content)))


SKOPS_SCHEMA = "schema.json"


def deep_schema(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SKOPS_SCHEMA, "[" * 100_000)


DAMAGE = {
    "metadata.json": [
        brackets,
        cut,
        lambda path: path.unlink(),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("5"),
        lambda path: path.write_bytes(b"\xff\xfe"),
        edited(lambda content: content.update(labels=5)),
        edited(lambda content: content["dataset"].update(instances="many")),
        edited(lambda content: content["features"].pop()),
        edited(lambda content: content["thresholds"].update(tag_a=0.9)),
        unsealed(lambda content: content.update(labels=5)),
        unsealed(lambda content: content.update(label_names="tag")),
        unsealed(lambda content: content.pop("labels")),
        unsealed(lambda content: content.update(schema=[1] * 1000)),
        unsealed(
            lambda content: content["method"]["params"].update(k=functools.reduce(lambda v, _: [v], range(900), 1))
        ),
    ],
    "encoder.json": [
        pipe,
        edited(lambda content: content["columns"][0].update(hashed=10**10)),
        brackets,
        cut,
        lambda path: path.unlink(),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("null"),
        edited(lambda content: content.update(columns=5)),
        edited(lambda content: content.update(learned=None)),
        edited(lambda content: content.update(reading={"tags": "tag", "separator": ""})),
        edited(lambda content: content["columns"].pop()),
        edited(lambda content: content["columns"].reverse()),
        edited(lambda content: content["columns"][0].update(name=3)),
        edited(lambda content: content["columns"][0].update(fill="many")),
        edited(lambda content: content["columns"][1].update(values="York")),
        edited(lambda content: content["columns"][1].update(values=["York", 3])),
    ],
    "model.skops": [pipe, brackets, cut, lambda path: path.unlink(), object_array, deep_schema],
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, damages in DAMAGE.items() for number in range(len(damages))]
)
def test_a_damaged_folder_is_refused_in_one_line(
    name, number, model_path, own_csv, tmp_path, monkeypatch, served, capsys
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model_path, "model")
    DAMAGE[name][number](tmp_path / "model" / name)
    for argv in (
        ["predict", "model", str(own_csv), "-o", "decisions.csv"],
        ["explain", "model", str(own_csv), "--label", "tag_a"],
        ["monitor", "model", str(own_csv)],
        ["serve", "model", "--port", "0"],
    ):
        assert main(argv) == 2, argv
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["card", "model"]) == (2 if name == "metadata.json" else 0)
    assert served == []
    assert not os.path.exists("PLANTED")


MANY = ("metrics", "versions", "thresholds", "quantiles", "counts")


def places(value, path=()):
    """Yield the paths to the values of JSON; of a list, and of a mapping with names of data, the first alone."""
    first = (isinstance(value, list) and path != ("columns",)) or path[-1:] in [(name,) for name in MANY]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(inner)[: 1 if first else None]:
        yield *path, key
        yield from places(item, (*path, key))


def with_value(content, path, value):
    """Return JSON with another value at a path."""
    changed = copy.deepcopy(content)
    inner = functools.reduce(operator.getitem, path[:-1], changed)
    inner[path[-1]] = value
    return changed


WRONG = (None, ["x"])


def test_metadata_with_a_wrong_value_are_refused_or_do_no_harm(model, own_csv, tmp_path):
    content = json.loads(model.metadata.save(tmp_path).read_text())
    del content["sha256"]
    shares, rows = np.full(3, 0.5), model.read(own_csv)
    refused, accepted = set(), []
    for path in places(content):
        for value in WRONG:
            (tmp_path / "metadata.json").write_text(json.dumps(with_value(content, path, value)))
            try:
                about = ModelMetadata.load(tmp_path)
            except DeploymentError:
                refused.add(path)
                continue
            model_card(about).markdown()
            prediction_warnings(about, shares, 90)
            accepted.append((path, about))
    assert {("dataset", "instances"), ("labels", 0, "prevalence"), ("features", 0, "sample", "counts", 0)} <= refused
    assert {path[0] for path, _ in accepted} >= {"commit", "dataset", "metrics"}
    for path, about in accepted:
        if path[0] in ("features", "labels", "calibration") and len(path) > 2:
            monitor_rows(SavedModel(model.estimator, model.encoder, about), rows)


def test_an_encoder_with_a_wrong_value_is_refused_or_encodes(model, own_csv):
    content, rows = json.loads(json.dumps(model.encoder.to_json())), model.read(own_csv)
    refused = set()
    for path in places(content):
        for value in WRONG:
            try:
                TableEncoder.from_json(with_value(content, path, value)).encode(rows)
            except DatasetError:
                refused.add(path)
    assert {("columns", 0, "kind"), ("columns", 0, "fill"), ("columns", 1, "values", 0), ("reading",)} <= refused


def test_parts_of_two_models_are_refused(model, tmp_path):
    folder = model.save(tmp_path)
    estimator = SavedModel.load(folder).estimator
    estimator.steps_ = [("classifier", MLkNN())]  # not fitted
    SavedModel(estimator, model.encoder, model.metadata).save(folder)
    with pytest.raises(DeploymentError, match="damaged, it predicts nothing"):
        SavedModel.load(folder)
