"""Settings of a model that another machine registered: what they may name before a method is built from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from multilab.cells.conf import names, read_settings
from multilab.cells.method import class_names, names_in
from multilab.core.text import excerpt
from multilab.models.errors import DeploymentError
from multilab.models.trusted_types import TRUSTED_VARIABLE, is_estimator, trusted_by_user

__all__ = ["trusted_settings"]

_WANTED = ("dataset", "method", "mapping", "protocol", "seed", "tune")
_ATTRIBUTE = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*")
_OF_A_CLASS = "hydra.utils.get_class"  # the value is the class itself


def trusted_settings(settings: Any, own: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return settings from a registry if they name nothing but methods of this machine and trusted classes.

    What ``_target_`` names is called when a method is built, and a method in ``base_scores`` may be the path of a
    file. So classes are those of `multilab.models.trusted_types`, or those that a method file of the package or of
    the user's project names, with texts that such a file has, too (one may be a path); methods have the name of such a
    file; and neither Hydra's other keys nor interpolations nor folders of a cache are read.

    Parameters
    ----------
    settings : object
        Of the registered model.
    own : mapping
        Of a model of this machine.
    where : str
        For the message.

    Returns
    -------
    dict
        The settings, without the packages that the method file asks to install.

    Raises
    ------
    DeploymentError
        If a setting is refused or missing. The message names it.
    """
    mapping = settings.get("mapping") if isinstance(settings, dict) else None
    if not (isinstance(mapping, dict) and {*_WANTED} <= {*settings} and isinstance(settings["method"], str)):
        raise DeploymentError(f"{where} has no settings to evaluate; fit it again")
    tune = settings["tune"] or {}
    if not isinstance(tune, dict):
        raise DeploymentError(f"{where} has no settings to evaluate; fit it again")
    # a storage of trials is not read, see `multilab.models.champions.settings_cells`
    used = {"mapping": mapping, "tune": {name: value for name, value in tune.items() if name != "storage"}}
    for key, value in _items(used):
        if key.startswith("_") and (key != "_target_" or not isinstance(value, str)):
            raise DeploymentError(f"{where} has the setting {excerpt(key)}={excerpt(repr(value))}, which is not read")
        if "${" in key or (isinstance(value, str) and "${" in value):
            raise DeploymentError(f"{where} has the setting {excerpt(key)}={excerpt(repr(value))}, which is not read")
        if key.rpartition("__")[2] == "memory" and value is not None:  # joblib unpickles what is in that folder
            raise DeploymentError(f"{where} has the setting {excerpt(key)}={excerpt(repr(value))}, which is not read")
        if key == "base_scores":
            _check_methods(value, where)
        if key == "save_attributes" and not all(map(_ATTRIBUTE.fullmatch, names_in(value))):
            raise DeploymentError(f"{where} has the setting {excerpt(key)}={excerpt(repr(value))}, which is not read")
    foreign = [block for block in _blocks(used) if not _is_trusted(block)]
    if foreign:
        here = [read_settings("method", name) for name in names("method")] + [dict(own)]
        classes, texts = {class_name for method in here for class_name in class_names(method)}, {*names_in(here)}
        for block in foreign:
            name = excerpt(str(block.get("path") if block["_target_"] == _OF_A_CLASS else block["_target_"]))
            if not {*class_names(block)} <= classes or block["_target_"] in _FUNCTIONS:
                raise DeploymentError(
                    f"{where} is evaluated by {name}, which no method file here names; if you trust it, name it in "
                    f"{TRUSTED_VARIABLE}"
                )
            if unknown := {*names_in(block)} - texts:
                raise DeploymentError(
                    f"{where} gives {name} the setting {excerpt(min(unknown))!r}, which no method file here has"
                )
    return {**settings, "mapping": {name: value for name, value in mapping.items() if name != "requires"}}


_FUNCTIONS = {
    f"hydra.utils.{name}" for name in ("get_method", "get_static_method", "get_object", "instantiate", "call")
}


def _is_trusted(block: Mapping[str, Any]) -> bool:
    """Return whether a block builds an estimator of the lists, or names a class that the user trusts."""
    target = block["_target_"]
    if target == _OF_A_CLASS:
        return block.get("path") in trusted_by_user()
    return is_estimator(target)


def _check_methods(value: Any, where: str) -> None:
    """Refuse base methods that are not known here by name, in a list or in the choices of a search space."""
    method_names = {*names("method")}
    for text in names_in(value.get("choices") if isinstance(value, dict) else value):
        if text not in method_names or text.endswith(".yaml"):
            raise DeploymentError(f"{where} is evaluated on scores of {excerpt(repr(text))}, which is no method here")


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of all mappings in a value."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), item
            yield from _items(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _items(item)
    elif isinstance(value, str):
        yield "", value


def _blocks(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings in a value that name a class."""
    if isinstance(value, Mapping):
        if "_target_" in value:
            yield value
        for item in value.values():
            yield from _blocks(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _blocks(item)
