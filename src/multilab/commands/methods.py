"""Description of the methods: a line each, or all arguments of one."""

import importlib
import inspect
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from multilab.core.messages import unknown_name
from multilab.core.text import docstring
from multilab.experiments.conf import names
from multilab.experiments.errors import ExperimentError
from multilab.experiments.method import Method, load_method
from multilab.experiments.stored import setting_text


def family(method: Method) -> str:
    """Return the family in the method's YAML, else the package of its last estimator: ``neighbours``, ``sklearn``."""
    if method.family:
        return method.family
    targets = _targets(method.identity())
    if targets[0].startswith("multilab.decision."):
        return "decision"
    own = [target for target in targets if target.startswith("multilab.methods.")]
    return own[0].split(".")[2] if own else targets[0].split(".")[0]


def _targets(value: Any) -> list[str]:
    """Return every ``_target_`` in some settings, in order of appearance."""
    targets: list[str] = []
    if isinstance(value, Mapping):
        targets += [value["_target_"]] if isinstance(value.get("_target_"), str) else []
        for item in value.values():
            targets += _targets(item)
    elif isinstance(value, list | tuple):
        for item in value:
            targets += _targets(item)
    return targets


def list_methods(wanted: str | None) -> int:
    """Print a line per method, of one family if named."""
    methods = [load_method(name) for name in names("method")]
    families = sorted({family(method) for method in methods})
    if wanted is not None and wanted not in families:
        raise ExperimentError(unknown_name("family", wanted, families))
    name_width, family_width = (2 + max(map(len, column)) for column in ([m.name for m in methods], families))
    print(f"{'name':<{name_width}}{'family':<{family_width}}{'reads':<13}title")
    for method in methods:
        if wanted in (None, family(method)):
            reads = "base scores" if method.base_scores else "features"
            package = next((text for text in method.requires.split() if not text.startswith("-")), None)
            needs = f" (needs {package})" if package else ""
            print(f"{method.name:<{name_width}}{family(method):<{family_width}}{reads:<13}{method.title}{needs}")
    return 0


def show_method(name: str) -> int:
    """Print what a method is, its arguments and its search space."""
    if name not in names("method"):
        raise ExperimentError(unknown_name("method", name, names("method"), "multilab methods list"))
    method = load_method(name)
    lines = [f"{method.name}: {method.title}", f"  family     {family(method)}", f"  class      {method.target}"]
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
    return 0


def _paragraph(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(" ".join(text.split()), 105)
    return [f"  {head if i == 0 else '':<10} {line}" for i, line in enumerate(lines)]


def _reads(method: Method) -> str:
    """Return what the estimator is fitted on."""
    if method.base_scores:
        inner = ", ".join(f"{name} {value}" for name, value in method.inner_cv.items())
        return f"out-of-fold scores of {', '.join(method.base_scores)} ({inner}) instead of the features"
    scaling = {"none": "as they are", "minmax": "scaled to [0, 1]", "standard": "standardised"}
    fitted = "" if method.preprocessing == "none" else " (fitted on the training set)"
    return f"features, {scaling[method.preprocessing]}{fitted}"


def _estimators(method: Method) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the estimators whose arguments can be set: the method's own, or the steps of its pipeline."""
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
    if "choices" in space:
        return "one of " + ", ".join(map(setting_text, space["choices"]))
    scale = ", logarithmic" if space.get("log") else ""
    return f"{space.get('type')} {setting_text(space.get('low'))} to {setting_text(space.get('high'))}{scale}"
