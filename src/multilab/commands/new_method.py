"""The files of a new method: a class that works, its YAML and its test, in the package or in the current folder."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from multilab.core import conf_dir, write_atomically
from multilab.core.messages import unknown_name
from multilab.core.shell import command, short_path
from multilab.experiments.conf import names
from multilab.experiments.errors import ExperimentError
from multilab.methods.discovery import public_classes

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), trim_blocks=True, keep_trailing_newline=True
)


def write_method(name: str, *, family: str = "transformation", outside: bool = False) -> int:
    """Write the files of a new method and print what to do next.

    Parameters
    ----------
    name : str
        Name of the method, in lower case: ``label_means`` makes the class ``LabelMeans``.
    family : str
        Folder of ``multilab.methods``; not used with ``outside``.
    outside : bool
        Write into the current folder instead of the package.

    Raises
    ------
    ExperimentError
        If the name is none or taken, a file exists, or the current folder is no checkout.
    """
    title = "".join(part.capitalize() for part in name.split("_"))
    _check_name(name, title, outside)
    module = name if outside else f"multilab.methods.{family}.{name}"
    files = _outside_files(name) if outside else _package_files(name, family)
    for path in files.values():
        if path.exists():
            raise ExperimentError(f"{short_path(path)} exists; give the method another name, or remove the file")
    for template, path in files.items():
        text = _TEMPLATES.get_template(f"{template}.j2").render(name=name, cls=title, module=module, outside=outside)
        write_atomically(path, text)
    print(f"{short_path(files['method.py'])}  the class {title}, which works: edit `fit` and `_scores`")
    print(f"{short_path(files['method.yaml'])}  its arguments, scaling and search space")
    print(f"{short_path(files['test_method.py'])}  its test: python -m pytest -q {short_path(files['test_method.py'])}")
    print(f"Next: {command('multilab')} compare dataset=genes-toy methods={name},mlknn,br_logistic")
    return 0


def _check_name(name: str, title: str, outside: bool) -> None:
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ExperimentError(f"{name!r} is no name of a method: lower-case letters, digits and _, a letter first")
    if name in names("method"):
        raise ExperimentError(f"there is a method {name!r} already: `{command('multilab')} methods show {name}`")
    if title in public_classes():
        raise ExperimentError(f"there is a class {title} already, in {public_classes()[title]}; choose another name")
    if outside and not Path(f"{name}.py").exists() and find_spec(name) is not None:
        raise ExperimentError(f"a module {name!r} is installed already; choose another name")


def _outside_files(name: str) -> dict[str, Path]:
    here = Path.cwd()
    return {
        "method.py": here / f"{name}.py",
        "method.yaml": here / "conf" / "method" / f"{name}.yaml",
        "test_method.py": here / f"test_{name}.py",
    }


def _package_files(name: str, family: str) -> dict[str, Path]:
    checkout = conf_dir().parent
    folder = checkout / "src" / "multilab" / "methods"
    if not folder.is_dir():
        raise ExperimentError("this folder is no checkout of multilab; add --outside to write the method here")
    families = sorted(path.parent.name for path in folder.glob("[!_]*/__init__.py"))
    if family not in families:
        raise ExperimentError(unknown_name("family", family, families))
    return {
        "method.py": folder / family / f"{name}.py",
        "method.yaml": conf_dir() / "method" / f"{name}.yaml",
        "test_method.py": checkout / "tests" / "methods" / f"test_{name}.py",
    }
