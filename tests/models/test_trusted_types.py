"""What a skops file may name: for every loader of the installed skops, and for every class of the lists."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import zipfile

import pytest
import skops.io
from skops.io._audit import NODE_TYPE_MAPPING

from multilab.methods import all_estimators
from multilab.models import trusted_types
from multilab.models.fitted import FittedMethod
from multilab.models.skops_files import untrusted_types
from multilab.models.trusted_types import TRUSTED, TRUSTED_VARIABLE, is_estimator, is_trusted

LOADERS = sorted({loader for loader, _ in NODE_TYPE_MAPPING})
FUNCTIONS = (
    "multilab.models.fit.fit_and_log",
    "multilab.models.registry.download",
    "multilab.models.loading.load_model",
    "multilab.decision.thresholds.best_k",
    "numpy.load",
    "os.system",
)
CLASSES = (
    "multilab.models.fit.FitOptions",
    "multilab.models.saved_model.SavedModel",
    "multilab.methods.networks.pretrained.PretrainedBinaryRelevance",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "argparse.Namespace",
    "subprocess.Popen",
)
OF_LISTS = (
    "multilab.models.fitted.FittedMethod",
    "multilab.methods.neighbours.mlknn.MLkNN",
    "sklearn.svm._classes.SVC",
)


def test_every_loader_of_a_saved_model_is_one_of_the_installed_skops():
    assert set(TRUSTED) <= set(LOADERS)


@pytest.mark.parametrize("loader", [*LOADERS, "NewNode"])
def test_a_loader_names_what_is_on_its_list_only(loader, monkeypatch):
    for name in (*FUNCTIONS, *CLASSES):
        assert not is_trusted(loader, name)
    for name in OF_LISTS:
        assert is_trusted(loader, name) == (loader == "ObjectNode")
    monkeypatch.setenv(TRUSTED_VARIABLE, ", ".join((*FUNCTIONS, "argparse.Namespace", "no.such.module", "x")))
    for name in FUNCTIONS:
        assert not is_trusted(loader, name)
    assert is_trusted(loader, "argparse.Namespace") == (loader in ("ObjectNode", "TypeNode"))
    if loader not in TRUSTED:
        for name in ("builtins.dict", *OF_LISTS, *TRUSTED["FunctionNode"]):
            assert not is_trusted(loader, name)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("name", ["multilab.models.fit.fit_and_log", "multilab.models.fit.FitOptions", "os.system"])
def test_a_file_that_names_something_of_ours_is_refused_whatever_the_loader(loader, name):
    content = planted(
        {"__loader__": loader, "__module__": name.rpartition(".")[0], "__class__": name.rpartition(".")[2]}
    )
    assert any(one.partition(" ")[0] == name for one in untrusted_types(content))


def planted(node):
    """Return a file of a fitted method with a further attribute."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(FittedMethod(None, 1)))) as archive:
        schema = json.loads(archive.read("schema.json"))
    schema["content"]["content"]["note"] = {**node, "__id__": 7}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    return buffer.getvalue()


def test_the_lists_name_classes_and_functions_of_one_array():
    for loader, names in TRUSTED.items():
        for name in names:
            module, _, attribute = name.rpartition(".")
            thing = getattr(importlib.import_module(module), attribute)
            assert inspect.isclass(thing) == (loader != "FunctionNode"), name
    for name in TRUSTED["FunctionNode"]:
        module, _, attribute = name.rpartition(".")
        first, *_ = inspect.signature(getattr(importlib.import_module(module), attribute)).parameters
        assert first in ("scores", "P")


def test_our_estimators_are_trusted_but_those_that_read_a_file():
    refused = {one.__name__ for one in all_estimators() if not is_estimator(f"{one.__module__}.{one.__name__}")}
    assert refused == set(trusted_types._NOT_OURS)
    assert is_estimator("multilab.methods.MLkNN")
    assert is_estimator("sklearn.svm.SVC")
    assert not is_estimator("multilab.methods.base.MultiLabelClassifier.fit")
    assert not is_estimator("multilab.decision.best_k")
