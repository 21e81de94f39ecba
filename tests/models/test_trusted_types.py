"""What a skops file may name: for every loader of the installed skops, and for every class of the lists."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import zipfile

import pytest
import skops.io
from numpy.lib import format as npy_format
from skops.io._audit import NODE_TYPE_MAPPING

from multilab.cells import Scaling
from multilab.methods import all_estimators
from multilab.models import trusted_types
from multilab.models.skops_files import untrusted_types
from multilab.models.trusted_types import TRUSTED, TRUSTED_VARIABLE, is_estimator, is_trusted

LOADERS = sorted({loader for loader, _ in NODE_TYPE_MAPPING})
FUNCTIONS = (
    "multilab.experiments.fit.fit_and_log",
    "multilab.models.registry.download",
    "multilab.models.loading.load_model",
    "multilab.decision.thresholds.best_k",
    "numpy.load",
    "os.system",
)
CLASSES = (
    "multilab.experiments.fit.FitOptions",
    "multilab.models.saved_model.SavedModel",
    "multilab.methods.networks.pretrained.PretrainedBinaryRelevance",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "argparse.Namespace",
    "subprocess.Popen",
)
OF_LISTS = (
    "multilab.cells.pipeline.MethodPipeline",
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
@pytest.mark.parametrize(
    "name", ["multilab.experiments.fit.fit_and_log", "multilab.experiments.fit.FitOptions", "os.system"]
)
def test_a_file_that_names_something_of_ours_is_refused_whatever_the_loader(loader, name):
    content = planted(
        {"__loader__": loader, "__module__": name.rpartition(".")[0], "__class__": name.rpartition(".")[2]}
    )
    assert any(one.partition(" ")[0] == name for one in untrusted_types(content))


def nodes(*items, number):
    """Return the node of a list."""
    return {
        **{"__loader__": "ListNode", "__module__": "builtins", "__class__": "list"},
        **{"__id__": number, "content": [*items]},
    }


def array_node(file, number):
    """Return the node of an array in a file."""
    return {
        **{"__loader__": "NdArrayNode", "__module__": "numpy", "__class__": "ndarray"},
        **{"__id__": number, "type": "numpy", "file": file},
    }


def npy(shape, data=b""):
    """Return the file of an array of numbers."""
    buffer = io.BytesIO()
    npy_format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + data


@pytest.mark.parametrize("first", ["a.npy", "b.npy"])
def test_the_files_of_an_object_that_is_there_twice_are_all_checked(first):
    files = {"a.npy": npy((1,), bytes(8)), "b.npy": npy((2**40,))}
    second = "b.npy" if first == "a.npy" else "a.npy"
    twice = [nodes(array_node(first, 20), number=10), nodes(array_node(second, 21), number=10)]
    with pytest.raises(ValueError, match="shape"):
        untrusted_types(planted(nodes(*twice, number=9), **files))


def test_keys_of_a_dictionary_that_is_there_twice_are_of_plain_types():
    function = {
        **{"__loader__": "FunctionNode", "__module__": "multilab.decision.calibrated", "__class__": "_line"},
        "__id__": 30,
    }
    key = {"__loader__": "TypeNode", "__module__": "builtins", "__class__": "str"}

    def dictionary(of_types, of_key):
        return {
            **{"__loader__": "DictNode", "__module__": "builtins", "__class__": "dict", "__id__": 10, "content": {}},
            "key_types": nodes({**key, "__id__": of_key}, number=of_types),
        }

    for twice in ([dictionary(20, 30), dictionary(21, 31)], [dictionary(21, 31), dictionary(20, 30)]):
        assert untrusted_types(planted(nodes(*twice, number=9))) == []
        with pytest.raises(ValueError, match="number"):
            untrusted_types(planted(nodes(function, *twice, number=9)))


def test_a_matrix_of_objects_is_none_of_arrays():
    shape = {"__loader__": "TupleNode", "__module__": "builtins", "__class__": "tuple", "__id__": 2}
    one = {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str", "__id__": 3, "content": "2"}
    matrix = {"__loader__": "NdArrayNode", "__module__": "numpy", "__class__": "ndarray", "__id__": 4, "type": "json"}
    file, part = npy((1,), bytes(8)), array_node("a.npy", 5)
    column = {**matrix, "shape": {**shape, "content": [one]}, "content": [part, part]}
    assert untrusted_types(planted(column, **{"a.npy": file})) == []
    for content in ([part, part], [nodes(part, number=6)]):
        square = {**matrix, "shape": {**shape, "content": [one, one]}, "content": content}
        with pytest.raises(ValueError, match="matrix"):
            untrusted_types(planted(square, **{"a.npy": file}))


def planted(node, **files):
    """Return a file of a fitted method with a further attribute."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(Scaling()))) as archive:
        schema = json.loads(archive.read("schema.json"))
    schema["content"]["content"]["note"] = {"__id__": 7, **node}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {"schema.json": json.dumps(schema), **files}.items():
            archive.writestr(name, content)
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
