"""Where settings are: those of the package, and one's own in the folder ``conf`` of the current folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from multilab.core import conf_dir
from multilab.core.files import not_a_file
from multilab.experiments.errors import ExperimentError

__all__ = ["entrant_names", "named_file", "new_settings_dir", "own_names", "settings_path"]

_ENTRANTS = {"method": "entrant"}
"""Groups of the package with members in a second folder: the entrants of the arena are methods, but not in `all`."""

_named: dict[tuple[str, str], Path] = {}


def own_conf_dir() -> Path | None:
    """Return ``conf`` of the current folder, ``None`` if there is none or it is that of the package."""
    folder = Path.cwd() / "conf"
    return folder if folder.is_dir() and folder.resolve() != conf_dir().resolve() else None


def new_settings_dir() -> Path:
    """Return the folder that new settings are written to: the checkout's in a checkout, else ``conf`` here.

    ``MULTILAB_CONF`` names another one.
    """
    here = Path.cwd() / "conf"
    return conf_dir() if os.environ.get("MULTILAB_CONF") or here.resolve() == conf_dir().resolve() else here


def own_names(group: str) -> list[str]:
    """Return the names of one's own settings of a group (``method``, ``study``, ``protocol``), sorted."""
    folder = own_conf_dir()
    listed = [path.stem for path in (folder / group).glob("*.yaml")] if folder else []
    return sorted({*listed, *(name for kind, name in _named if kind == group)})


def entrant_names(group: str) -> list[str]:
    """Return the names of a group that `all` does not mean: of methods the entrants of the arena, sorted."""
    return sorted(path.stem for path in (conf_dir() / _ENTRANTS[group]).glob("*.yaml")) if group in _ENTRANTS else []


def settings_path(group: str, name: str) -> Path:
    """Return the file of a name; the code next to one's own settings becomes importable.

    Raises
    ------
    ExperimentError
        If the package and the current folder both have the name.
    """
    package = conf_dir() / group / f"{name}.yaml"
    if name in entrant_names(group):
        package = conf_dir() / _ENTRANTS[group] / f"{name}.yaml"
    folder = own_conf_dir()
    own = _named.get((group, name)) or (folder / group / f"{name}.yaml" if folder else package)
    if own == package or not own.is_file():
        return package
    if package.is_file():
        raise ExperimentError(f"the package has a {group} {name!r} too; rename {own}")
    _make_importable(own)
    return own


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
