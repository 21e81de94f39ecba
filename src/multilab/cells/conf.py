"""The YAML files in ``conf/``, of the package and of the user: their folders, names and content.

One's own are in the folder ``conf`` of the current folder. Hydra is not imported, since the core installation has none.
A test confirms that Hydra composes the same values.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.cells.errors import ExperimentError
from multilab.core import conf_dir
from multilab.core.files import not_a_file
from multilab.core.messages import did_you_mean
from multilab.core.settings import YAMLError, check_yaml_depth, parse_yaml

__all__ = [
    "check_names",
    "check_setting_names",
    "entrant_names",
    "load_protocol",
    "named_file",
    "names",
    "new_settings_dir",
    "other_names",
    "package_names",
    "plain",
    "read_settings",
    "settings_path",
]


def plain(node: Any) -> Any:
    """Return an OmegaConf node as plain Python values, interpolations resolved."""
    from omegaconf import OmegaConf

    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def names(group: str) -> list[str]:
    """Return the sorted names of a group of settings (``method``, ``study``, ``protocol``), the user's included.

    Methods include the entrants of the arena, which `all` does not mean.
    """
    return sorted({*package_names(group), *other_names(group)})


def other_names(group: str) -> list[str]:
    """Return the sorted names of a group that are not in the package's folder of it: entrants, and the user's."""
    folder = own_conf_dir()
    listed = [path.stem for path in (folder / group).glob("*.yaml")] if folder else []
    return sorted({*entrant_names(group), *listed, *(name for kind, name in _named if kind == group)})


def package_names(group: str) -> list[str]:
    """Return the sorted names of a group of settings, without the user's and without arena entrants."""
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
    folder = own_conf_dir()
    for candidate in (path, folder / group / path.name) if folder else (path,):
        if kind := not_a_file(candidate):
            raise ExperimentError(f"{candidate}: it is {kind}; settings are a YAML file")
    if not path.is_file():
        raise ExperimentError(
            f"no {group} is called {name!r}{did_you_mean(name, names(group)) or '.'} See {path.parent}"
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
    """Refuse a block that is not a mapping or has an unknown key."""
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


_ENTRANTS = {"method": "entrant"}
"""Groups of the package with members in a second folder: the entrants of the arena are methods, but not in `all`."""
_named: dict[tuple[str, str], Path] = {}


def own_conf_dir() -> Path | None:
    """Return ``conf`` of the current folder, ``None`` if there is none or it is that of the package."""
    folder = Path.cwd() / "conf"
    return folder if folder.is_dir() and folder.resolve() != conf_dir().resolve() else None


def new_settings_dir() -> Path:
    """Return the folder for new settings: the checkout's in a checkout, else ``conf`` in the current folder.

    ``MULTILAB_CONF`` names another one.
    """
    here = Path.cwd() / "conf"
    return conf_dir() if os.environ.get("MULTILAB_CONF") or here.resolve() == conf_dir().resolve() else here


def entrant_names(group: str) -> list[str]:
    """Return the sorted names of a group that `all` excludes: for methods, the entrants of the arena."""
    return sorted(path.stem for path in (conf_dir() / _ENTRANTS[group]).glob("*.yaml")) if group in _ENTRANTS else []


def settings_path(group: str, name: str) -> Path:
    """Return the file of a name, and make the code next to the user's settings importable.

    Raises
    ------
    ExperimentError
        If the package and the current folder both have the name.
    """
    package = conf_dir() / group / f"{name}.yaml"
    if name in entrant_names(group):
        package = conf_dir() / _ENTRANTS[group] / f"{name}.yaml"
    folder = own_conf_dir()
    file = _named.get((group, name)) or (folder / group / f"{name}.yaml" if folder else package)
    if file == package or not file.is_file():
        return package
    if package.is_file():
        raise ExperimentError(f"the package has a {group} {name!r} too; rename or delete {file}")
    _make_importable(file)
    return file


def named_file(group: str, text: str) -> str:
    """Return the name of settings given as a path (``./mine.yaml``), which is then known in this process.

    A text that does not end in ``.yaml`` is a name already.

    Raises
    ------
    ExperimentError
        If there is no such file.
    """
    if not text.endswith(".yaml"):
        return text
    path = Path(text).resolve()
    if kind := not_a_file(path):
        raise ExperimentError(f"{text}: it is {kind}, `{group}=` takes the path of a YAML file, or a name")
    if not path.is_file():
        raise ExperimentError(f"{text}: there is no such file; `{group}=` takes the path of a YAML file, or a name")
    _named[group, path.stem] = path
    return path.stem


def _make_importable(path: Path) -> None:
    """Put the folder of one's code last on the Python path, of this process and of those it starts.

    It is the folder that holds ``conf``, or, of a file elsewhere, the file's own folder.
    """
    folder = str(path.parents[2] if path.parent.parent.name == "conf" else path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
        entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        os.environ["PYTHONPATH"] = os.pathsep.join([*entries, folder])
