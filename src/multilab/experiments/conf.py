"""Reading of the YAML files in ``conf/``.

The ``keys`` stage runs this on every ``dvc repro`` and must stay under half a second, so Hydra is not imported. A test
confirms that Hydra composes the same values.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.core import conf_dir
from multilab.core.files import not_a_file
from multilab.core.messages import did_you_mean
from multilab.core.settings import YAMLError, check_yaml_depth, parse_yaml
from multilab.experiments.errors import ExperimentError
from multilab.experiments.own_settings import entrant_names, own_conf_dir, own_names, settings_path

__all__ = [
    "check_names",
    "check_setting_names",
    "load_protocol",
    "names",
    "package_names",
    "plain",
    "read_settings",
]


def plain(node: Any) -> Any:
    """Return an OmegaConf node as plain Python values, interpolations resolved."""
    from omegaconf import OmegaConf

    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def names(group: str) -> list[str]:
    """Return the names of a group of settings (``method``, ``study``, ``protocol``), one's own too, sorted.

    Methods include the entrants of the arena, which `all` does not mean.
    """
    return sorted({*package_names(group), *entrant_names(group), *own_names(group)})


def package_names(group: str) -> list[str]:
    """Return the names of a group of settings without one's own and without entrants of the arena, sorted."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def load_protocol(name: str) -> dict[str, Any]:
    """Read ``conf/protocol/<name>.yaml``."""
    return read_settings("protocol", name)


def read_settings(group: str, name: str) -> dict[str, Any]:
    """Read ``conf/<group>/<name>.yaml``, of the package or of the current folder.

    Raises
    ------
    ExperimentError
        If there is no such file, or it is not a mapping in valid YAML.
    """
    path = settings_path(group, name)
    own = own_conf_dir()
    for candidate in (path, own / group / path.name) if own else (path,):
        if kind := not_a_file(candidate):
            raise ExperimentError(f"{candidate}: it is {kind}; settings are a YAML file")
    if not path.is_file():
        raise ExperimentError(
            f"no {group} is called {name!r}{did_you_mean(name, names(group))}; they are in {path.parent}"
        )
    return read_settings_file(path)


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read settings from a file.

    Raises
    ------
    ExperimentError
        If it is not a mapping in valid YAML.
    """
    content = path.read_bytes()
    depends_on_environment = b"${" in content
    return _parse(path, content) if depends_on_environment else _parse_once(path, content)


def _parse(path: Path, content: bytes) -> dict[str, Any]:
    try:
        text = content.decode()
        values = _interpolated(text) if "${" in text else parse_yaml(text)
    except (YAMLError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ExperimentError(f"{path}: expected settings (key: value), got {type(values).__name__}")
    return values


_parse_once = functools.lru_cache(maxsize=1024)(_parse)


def _interpolated(text: str) -> Any:
    """Return the values of a text with OmegaConf's interpolations."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    check_yaml_depth(text)
    try:
        return plain(OmegaConf.create(text))
    except OmegaConfBaseException as error:
        raise YAMLError(str(error)) from None


def check_setting_names(location: str, kind: str, block: Any, known: Collection[str]) -> None:
    """Refuse a block that is not a mapping, or has a key that is not a setting of this kind."""
    if not isinstance(block, Mapping):
        raise ExperimentError(f"{location}: expected the settings of a {kind} ({', '.join(known)}), got {block!r}")
    for key in block:
        if key not in known:
            raise ExperimentError(f"{location}: {key!r} is not a setting of a {kind}{did_you_mean(str(key), known)}")


def check_names(location: str, kind: str, values: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that do not exist."""
    for name in values:
        if name not in known:
            raise ExperimentError(f"{location}: no {kind} is called {name!r}{did_you_mean(name, known)}")
