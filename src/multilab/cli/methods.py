"""The commands about methods: list, show, new."""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
import sys
import textwrap
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilab.cells.errors import ExperimentError
from multilab.cli.options import METHOD
from multilab.core import conf_dir, write_atomically
from multilab.core.messages import unknown_name
from multilab.core.shell import command, short_path
from multilab.core.text import docstring

if TYPE_CHECKING:
    from multilab.cells.method import Method


@click.group()
def methods() -> None:
    """List methods, show their arguments, write a new one."""


@methods.command("list")
@click.argument("family", required=False)
def list_methods(family: str | None) -> None:
    """List all methods, or those of one FAMILY."""
    from multilab.cells.conf import names
    from multilab.cells.method import family_of, load_method

    readable, refused = [], []
    for name in names("method"):
        try:
            readable.append(load_method(name))
        except ExperimentError as error:  # of one file: the others are listed
            refused.append(str(error))
    families = sorted({family_of(method) for method in readable})
    if family is not None and family not in families:
        raise ExperimentError(unknown_name("family", family, families))
    name_width, family_width = (2 + max(map(len, column)) for column in ([m.name for m in readable], families))
    print(f"{'name':<{name_width}}{'family':<{family_width}}{'reads':<13}title")
    for method in readable:
        if family in (None, family_of(method)):
            reads = "base scores" if method.base_scores else "features"
            package = next((text for text in method.requires.split() if not text.startswith("-")), None)
            needs = f" (needs {package})" if package else ""
            print(f"{method.name:<{name_width}}{family_of(method):<{family_width}}{reads:<13}{method.title}{needs}")
    for reason in refused:
        print(f"not listed: {reason}", file=sys.stderr)


@methods.command("show")
@click.argument("name", type=METHOD)
def show_method(name: str) -> None:
    """Show a method: arguments, search space, notes."""
    from multilab.cells.conf import names
    from multilab.cells.method import family_of, load_method

    if name not in names("method"):
        raise ExperimentError(unknown_name("method", name, names("method"), "multilab methods list"))
    method = load_method(name)
    lines = [f"{method.name}: {method.title}", f"  family     {family_of(method)}", f"  class      {method.target}"]
    lines += _paragraph("reads", _reads(method))
    lines += _paragraph("reference", method.reference) if method.reference else []
    lines += _paragraph("notes", method.notes) if method.notes else []
    lines += _paragraph("licence", method.licence) if method.licence else []
    lines += [f"  {'needs':<10} pip install {method.requires}"] if method.requires else []
    for heading, target, values in _estimators(method):
        lines += [f"arguments of {heading}:", *_arguments(target, values)]
    if method.search:
        lines += ["search space:"]
        lines += [f"  {argument:<24} {_space(space)}" for argument, space in method.search.items()]
    lines.append(f"run it: multilab train dataset=emotions method={name}")
    print("\n".join(lines))


@methods.command()
@click.argument("name")
@click.option("--family", metavar="NAME", default="transformation", show_default=True, help="Folder in the package.")
@click.option("--outside", is_flag=True, help="Write into the current folder, not into the package.")
def new(name: str, family: str, outside: bool) -> None:
    """Write the files of a new method.

    It writes a working class, its YAML file and a passing test.

    \b
    multilab methods new label_means --family neighbours
    multilab methods new label_means --outside

    NAME consists of lower-case letters, digits and _; my_method becomes the class MyMethod.
    """
    from jinja2 import Environment, FileSystemLoader

    loader = FileSystemLoader(Path(__file__).parent / "templates")
    templates = Environment(loader=loader, trim_blocks=True, keep_trailing_newline=True)
    title = "".join(part.capitalize() for part in name.split("_"))
    _check_name(name, title, outside)
    module = name if outside else f"multilab.methods.{family}.{name}"
    files = _outside_files(name) if outside else _package_files(name, family)
    for path in files.values():
        if path.exists():
            raise ExperimentError(f"{short_path(path)} exists; give the method another name, or remove the file")
    ignored = Path.cwd() / ".gitignore"
    if outside and not ignored.exists():
        files["gitignore"] = ignored
    for template, path in files.items():
        text = templates.get_template(f"{template}.j2").render(name=name, cls=title, module=module, outside=outside)
        write_atomically(path, text)
    print(f"{short_path(files['method.py'])}  the class {title}, which works: edit `_fit` and `_scores`")
    print(f"{short_path(files['method.yaml'])}  its arguments, scaling and search space")
    print(f"{short_path(files['test_method.py'])}  its test: python -m pytest -q {short_path(files['test_method.py'])}")
    if "gitignore" in files:
        print(f"{short_path(ignored)}  what multilab writes here and git should not keep")
    print(f"Next: {command('multilab')} compare --dataset genes-toy --method {name},mlknn,br_logistic")


def _paragraph(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(" ".join(text.split()), 105)
    return [f"  {head if i == 0 else '':<10} {line}" for i, line in enumerate(lines)]


def _reads(method: Method) -> str:
    """Return what the estimator is fitted on."""
    if method.base_scores:
        inner = ", ".join(f"{name} {value}" for name, value in method.inner_cv.items())
        return f"out-of-fold scores of {', '.join(method.base_scores)} ({inner}) instead of the features"
    scaling = {
        "none": "as they are",
        "minmax": "scaled to [0, 1]",
        "standard": "standardised",
        "tfidf": "with TF-IDF weights",
    }
    fitted = "" if method.preprocessing == "none" else " (fitted on the training set)"
    return f"features, {scaling[method.preprocessing]}{fitted}"


def _estimators(method: Method) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the estimators whose arguments can be set: the method itself, or the steps of its pipeline."""
    steps = method.params.get("steps")
    if not isinstance(steps, list):
        return [(method.target.rpartition(".")[2], method.target, method.params)]
    estimators = []
    for step, values in steps:
        changed = {k.removeprefix(f"{step}__"): v for k, v in method.params.items() if k.startswith(f"{step}__")}
        title = f"{step} ({values['_target_'].rpartition('.')[2]}; set +method.{step}__ARGUMENT=)"
        estimators.append((title, values["_target_"], {**values, **changed}))
    return estimators


def signature_of(target: str) -> dict[str, Any]:
    """Return the arguments of a class with their defaults; ``inspect.Parameter.empty`` for one that is required."""
    module, _, name = target.rpartition(".")
    parameters = inspect.signature(getattr(importlib.import_module(module), name)).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name: p.default for p in parameters if p.kind not in kinds}


def _arguments(target: str, values: Mapping[str, Any]) -> list[str]:
    """Return a line per argument: its value here, its default, and the first sentence of its documentation."""
    try:
        defaults = signature_of(target)
        described = _descriptions(target)
    except (ImportError, AttributeError, ValueError) as error:
        return [f"  not known: {target} cannot be imported ({error})"]
    from multilab.cells.inventory import setting_text

    lines = []
    for name, default in defaults.items():
        value = values.get(name, default)
        text = "required" if value is inspect.Parameter.empty else setting_text(value)
        if name in values and default is not inspect.Parameter.empty and values[name] != default:
            text += f" (default {setting_text(default)})"
        lines.append(f"  {name + ' = ' + text:<44} {described.get(name, '')}".rstrip())
    return lines or ["  none"]


def _descriptions(target: str) -> dict[str, str]:
    """Return the types of the arguments from the numpydoc section ``Parameters`` of a class."""
    module, _, name = target.rpartition(".")
    text = docstring(getattr(importlib.import_module(module), name))
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    types = {}
    for line in section.group(1).splitlines() if section else []:
        match = re.match(r"(\w[\w, ]*?) ?: (.*?)(?:, default=.*)?$", line)
        for argument in match.group(1).split(",") if match else ():
            types[argument.strip()] = match.group(2) if match else ""
    return types


def _space(space: Mapping[str, Any]) -> str:
    """Return a search space as text."""
    from multilab.cells.inventory import setting_text

    if "choices" in space:
        return "one of " + ", ".join(map(setting_text, space["choices"]))
    scale = ", logarithmic" if space.get("log") else ""
    return f"{space.get('type')} {setting_text(space.get('low'))} to {setting_text(space.get('high'))}{scale}"


def _check_name(name: str, title: str, outside: bool) -> None:
    from multilab.cells.conf import names
    from multilab.methods.discovery import public_classes

    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ExperimentError(
            f"{name!r} is not a valid method name: use lower-case letters, digits and _, and begin with a letter"
        )
    if name in names("method"):
        raise ExperimentError(f"a method {name!r} exists already: `{command('multilab')} methods show {name}`")
    if title in public_classes():
        raise ExperimentError(f"a class {title} exists already in {public_classes()[title]}; choose another name")
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
        raise ExperimentError("this folder is not a checkout of multilab; add --outside to write the method here")
    families = sorted(path.parent.name for path in folder.glob("[!_]*/__init__.py"))
    if family not in families:
        raise ExperimentError(unknown_name("family", family, families))
    return {
        "method.py": folder / family / f"{name}.py",
        "method.yaml": conf_dir() / "method" / f"{name}.yaml",
        "test_method.py": checkout / "tests" / "methods" / f"test_{name}.py",
    }
