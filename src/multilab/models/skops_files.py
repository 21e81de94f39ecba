"""Models as skops files: no pickle, nothing that is not on the lists of trusted names, and arrays that fit together.

A file is checked three times: as an archive and a tree of nodes before skops reads it, by skops itself, and as objects
after loading (`multilab.models.loaded_objects`).
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import skops.io

from multilab.core.array_files import check_npy, check_npz, unpacked_room
from multilab.core.files import not_a_file
from multilab.core.text import excerpt
from multilab.models.errors import DeploymentError
from multilab.models.loaded_objects import check_objects
from multilab.models.trusted_types import TRUSTED, TRUSTED_VARIABLE, is_trusted

__all__ = ["dump_model", "load_skops", "model_bytes", "names_in", "untrusted_types"]

_SCHEMA = "schema.json"
_ENTRY = re.compile(r"schema\.json|[0-9a-f-]+\.(npy|npz|bin)")
_OLDEST_PROTOCOL = 1  # before it, functions were written in another form


def model_bytes(model: Any) -> bytes:
    """Return a fitted model as the content of a skops file.

    Raises
    ------
    DeploymentError
        If the model holds an object that a skops file cannot hold, or a type that loading would refuse.
    """
    try:
        content = skops.io.dumps(model)
    except Exception as error:  # of skops or of the json module, whatever the model holds
        raise DeploymentError(f"this model cannot be saved without pickle: {error}") from None
    _refuse_untrusted(untrusted_types(content), "the fitted model")
    return content


def dump_model(model: Any, path: Path) -> None:
    """Write a fitted model as a skops file, see :func:`model_bytes`."""
    path.write_bytes(model_bytes(model))


def load_skops(path: Path) -> Any:
    """Return the model of a skops file.

    Raises
    ------
    DeploymentError
        If the file is damaged, holds a type that is not trusted (nothing of the file is executed then), or holds arrays
        that compiled code would read beyond their ends.
    """
    if kind := not_a_file(path):
        raise DeploymentError(f"{path}: it is {kind}, not a file")
    try:
        content = path.read_bytes()
        tree = _Tree(content)
    except OSError as error:
        raise DeploymentError(f"{path}: {error.strerror}") from None
    except Exception as error:  # a damaged archive, or JSON without end in it
        raise DeploymentError(f"{path}: not a skops file ({_reason(error)})") from None
    _refuse_untrusted(sorted(tree.untrusted), str(path))
    try:
        model = skops.io.loads(content, trusted=sorted(tree.names))
        check_objects(model)
    except Exception as error:  # whatever the constructors of trusted types raise for damaged content
        raise DeploymentError(f"{path}: damaged ({_reason(error)}); fit the model again") from None
    return model


def names_in(path: Path) -> set[str]:
    """Return the dotted names in a skops file, of which nothing is loaded; none of a file that is no such file."""
    try:
        return _Tree(path.read_bytes()).names
    except Exception:  # `load_skops` says what is wrong
        return set()


def untrusted_types(content: bytes) -> list[str]:
    """Return the names in a skops file that are not trusted for the loader that would load them, sorted.

    Raises
    ------
    ValueError
        If the content is not that of a file that skops writes.
    """
    return sorted(_Tree(content).untrusted)


class _Tree:
    """Names in the tree of a skops file, whose nodes are checked without loading any.

    Attributes
    ----------
    names : set of str
        All dotted names.
    untrusted : set of str
        Those that are not trusted for their loader.
    """

    def __init__(self, content: bytes) -> None:
        self.names, self.untrusted = set[str](), set[str]()
        self._first, self._owner = dict[int, Any](), dict[str, int]()
        self._room = unpacked_room(len(content))
        with zipfile.ZipFile(io.BytesIO(content)) as self._archive:
            _check_entries(self._archive.infolist(), len(content))
            schema = json.loads(self._archive.read(_SCHEMA))
            if not (isinstance(schema, dict) and type(schema.get("protocol")) is int):
                raise ValueError("no schema of skops")
            if schema["protocol"] < _OLDEST_PROTOCOL:
                raise ValueError(f"protocol {schema['protocol']} of skops is too old")
            self._visit(schema)

    def _visit(self, node: dict[str, Any]) -> None:
        loader, number = node["__loader__"], node["__id__"]
        name = f"{node['__module__']}.{node['__class__']}"
        if not (type(number) is int and number > 0 and isinstance(loader, str)):
            raise ValueError("a node without a number or a loader")
        # skops returns the object that it read first under that number, maybe another one than the first here: so what
        # is in a repeated node is checked, too. It writes a shared object in full each time: something shorter would
        # make a small file stand for a tree without end.
        if not _same(self._first.setdefault(number, node), node):
            raise ValueError("two objects have the same number")
        self.names.add(name)
        if not is_trusted(loader, name):
            self.untrusted.add(name if loader in TRUSTED else f"{name} by {loader}")
        elif check := _CHECKS.get(loader):
            check(self, node)
        for child in _children(node):
            self._visit(child)

    def array(self, node: dict[str, Any]) -> None:
        """Refuse an array that is no plain array of its file's size."""
        if node["type"] == "numpy":
            if self._is_new(node, ".npy"):
                with self._archive.open(node["file"]) as stream:
                    check_npy(stream, self._archive.getinfo(node["file"]).file_size)
        elif node["type"] == "json":
            _check_items(node)
        else:
            raise ValueError("an array of an unknown form")

    def sparse(self, node: dict[str, Any]) -> None:
        """Refuse a sparse matrix whose arrays are no plain ones, or that is compressed beyond reason."""
        if self._is_new(node, ".npz"):
            arrays = check_npz(self._archive.read(node["file"]), self._room)
            self._room -= sum(math.prod(shape) * kind.itemsize for shape, kind in arrays.values())

    def bytes(self, node: dict[str, Any]) -> None:
        """Refuse bytes that are in no file of their own."""
        if self._is_new(node, ".bin"):
            self._archive.getinfo(node["file"])

    def _is_new(self, node: dict[str, Any], extension: str) -> bool:
        """Return whether the file of a node was not checked yet; refuse the file of another node or kind."""
        file, number = node["file"], node["__id__"]
        if self._owner.get(file, number) != number or not file.endswith(extension):
            raise ValueError("two arrays are in one file")
        is_new = file not in self._owner
        self._owner[file] = number
        return is_new


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that unpacks to more than itself, or has entries that skops does not write."""
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or not all(map(_ENTRY.fullmatch, names)):
        raise ValueError("entries with the same or with a foreign name")
    # skops compresses nothing, and a small compressed entry may unpack to gigabytes
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("compressed entries")
    if any(entry.file_size != entry.compress_size for entry in entries) or sum(e.file_size for e in entries) > size:
        raise ValueError("entries that are larger than the file")


def _children(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes right below a node, wherever they are in it."""
    rest = [value for name, value in node.items() if not (name.startswith("__") and name != "__reduce__")]
    while rest:
        value = rest.pop()
        if isinstance(value, dict) and "__loader__" in value:
            yield value
        elif isinstance(value, dict | list):
            rest.extend(value.values() if isinstance(value, dict) else value)


def _same(first: Any, second: Any) -> bool:
    """Return whether two nodes are alike, but for the numbers and the files of what is in them."""
    if isinstance(first, dict) and isinstance(second, dict):
        names = first.keys() - {"__id__", "file"}
        return names == second.keys() - {"__id__", "file"} and all(_same(first[name], second[name]) for name in names)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def _check_dictionary(_: _Tree, node: dict[str, Any]) -> None:
    """Refuse keys that are made by anything but plain types: skops calls these."""
    kinds = node["key_types"]
    names = {f"{kind['__loader__']} {kind['__module__']}.{kind['__class__']}" for kind in kinds["content"]}
    if kinds["__loader__"] != "ListNode" or not names <= _KEYS or not isinstance(node["content"], dict):
        raise ValueError("keys of a dictionary that are no texts and no numbers")


_KEYS = {f"TypeNode {name}" for name in ("builtins.str", "builtins.int", "builtins.float", "builtins.bool")} | {
    f"TypeNode numpy.{name}" for name in ("int64", "float64", "str_")
}


def _check_items(node: dict[str, Any]) -> None:
    """Refuse a matrix of objects that NumPy would take apart: a small file may have one array in it a million times."""
    items, dimensions = node["content"], len(node["shape"]["content"])
    for _ in range(dimensions - 1):
        if not all(item["__loader__"] == "ListNode" for item in items):
            raise ValueError("a matrix of objects without rows")
        items = [item for row in items for item in row["content"]]
    if dimensions != 1 and not all(item["__loader__"] == "JsonNode" or item["__class__"] in _ITEMS for item in items):
        raise ValueError("a matrix of objects with other parts")


_ITEMS = ("DecisionTreeRegressor", "ExtraTreeRegressor")  # of boosted trees


def _check_text(_: _Tree, node: dict[str, Any]) -> None:
    if isinstance(json.loads(node["content"]), dict | list):
        raise ValueError("values in a text")


def _check_slice(_: _Tree, node: dict[str, Any]) -> None:
    if not all(value is None or type(value) is int for value in node["content"].values()):
        raise ValueError("a slice of other things than numbers")


def _check_loss(_: _Tree, node: dict[str, Any]) -> None:
    if node["content"]["content"]:
        raise ValueError("a loss function with a state")


def _check_partial(_: _Tree, node: dict[str, Any]) -> None:
    if node["content"]["func"]["__loader__"] != "FunctionNode":
        raise ValueError("a partial function of another thing than a function")


def _check_dtype(_: _Tree, node: dict[str, Any]) -> None:
    if node["content"]["__loader__"] != "NdArrayNode":
        raise ValueError("a type of numbers without an array")


def _check_generator(_: _Tree, node: dict[str, Any]) -> None:
    content = node["content"]
    kind = json.loads(content["bit_generator"]["content"]["bit_generator"]["content"])
    pool = content.get("seed_seq", {"content": {}})["content"].get("pool_size", {"content": "4"})
    if kind != "PCG64" or json.loads(pool["content"]) != 4:
        raise ValueError("a random generator that is not NumPy's default")


_CHECKS = {
    "DictNode": _check_dictionary,
    "JsonNode": _check_text,
    "SliceNode": _check_slice,
    "LossNode": _check_loss,
    "PartialNode": _check_partial,
    "DTypeNode": _check_dtype,
    "RandomGeneratorNode": _check_generator,
    "NdArrayNode": _Tree.array,
    "SparseMatrixNode": _Tree.sparse,
    "BytearrayNode": _Tree.bytes,
}


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {excerpt(str(error))}"


def _refuse_untrusted(foreign: list[str], where: str) -> None:
    if foreign:
        shown = ", ".join(excerpt(name) for name in foreign[:5])
        raise DeploymentError(
            f"{where} holds types that are not trusted: {shown}; if you know them and they are classes, name them in "
            f"{TRUSTED_VARIABLE} (separated by commas)"
        )
