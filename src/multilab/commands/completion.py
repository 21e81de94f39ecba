"""Completion of command lines: the arguments that can come next, and the scripts of the shells."""

import ast
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from multilab.core import MultilabError, conf_dir, store_dir

_PACKAGE = Path(__file__).parents[1]
_TEMPLATES = _PACKAGE / "commands" / "templates"

SCRIPTS = {shell: (_TEMPLATES / f"completion.{shell}").read_text(encoding="utf-8") for shell in ("bash", "zsh", "fish")}
"""The script of each shell."""


class CompletionError(MultilabError, ValueError):
    """A shell that there is no script for."""


def candidates(line: str) -> list[str]:
    """Return the candidates for the last argument of a command line.

    Parameters
    ----------
    line : str
        The command line up to the cursor, ``multilab`` included.
    """
    given = line.split()
    current = "" if not given or line[-1:].isspace() else given.pop()
    current = current.lstrip("'\"")
    given = given[1:]
    if not given:
        return _starting([*_ARGUMENTS_OF_VERB, "--help", "--version"], current)
    complete = _ARGUMENTS_OF_VERB.get(given[0])
    options = complete(given[1:], current) if complete else []
    return _starting([*options, "--help"] if not current or current.startswith("-") else options, current)


def _starting(options: list[str], current: str) -> list[str]:
    return sorted({option for option in options if option.startswith(current)})


def _named(current: str, values: dict[str, Callable[[], list[str]]]) -> list[str]:
    """Return ``name=`` for every name or, after the sign, its values; the last of a list such as ``a,b``."""
    name, equals, value = current.partition("=")
    if not equals:
        return [f"{known}=" for known in values]
    if name not in values:
        return []
    head = re.match(r"(?:.*[,\[])?", value)
    done = head.group() if head else ""
    taken = set(re.split(r"[,\[\]]", done))
    return [f"{name}={done}{option}" for option in values[name]() if option not in taken]


def _names(group: str) -> list[str]:
    """Return the names of a group of settings: of datasets also ``MULTILAB_CARDS``, of methods also the entrants."""
    from multilab.datasets.catalogue import card_folders

    folders = card_folders() if group == "dataset" else [conf_dir() / group, Path("conf") / group]
    folders = [*folders, conf_dir() / "entrant"] if group == "method" else folders
    return [path.stem for folder in folders for path in folder.glob("*.yaml")]


def metrics() -> list[str]:
    """Return the names of the metrics of ``score_all``: the functions that are decorated by ``@metric``, sorted."""
    texts = (path.read_text(encoding="utf-8") for path in (_PACKAGE / "metrics").glob("*.py"))
    decorated = [match for text in texts for match in re.findall(r"(?ms)^@metric\((.*?)^def (\w+)", text)]
    return sorted(name for arguments, name in decorated if "in_score_all" not in arguments)


def presets() -> list[str]:
    """Return the names of the conventions of metrics: the keys of ``PRESETS``."""
    text = (_PACKAGE / "metrics" / "conventions.py").read_text(encoding="utf-8")
    return re.findall(r'(?m)^        "(\w+)": ', text.partition("\nPRESETS")[2].partition("\n)")[0])


@functools.cache
def arguments_of(method: str) -> dict[str, Any]:
    """Return the arguments of a method by dotted name: those of its YAML with their values, then the class's others."""
    try:
        from multilab.core.settings import YAMLError, parse_yaml
    except ImportError:  # the core install
        return {}
    folder = "entrant" if (conf_dir() / "entrant" / f"{method}.yaml").is_file() else "method"
    try:
        content = parse_yaml((conf_dir() / folder / f"{method}.yaml").read_text())
    except (OSError, YAMLError):
        return {}
    display = ("title", "reference", "notes", "family", "licence", "requires")
    lab = ("_target_", *display, "search", "check_params", "seed_name", "save_attributes", "inner_cv", "steps")
    arguments: dict[str, Any] = {}
    for name, value in content.items():
        nested = isinstance(value, dict) and value
        entries = {f"{name}.{inner}": v for inner, v in value.items()} if nested else {name: value}
        arguments |= {k: v for k, v in entries.items() if name not in lab and not k.endswith("_target_")}
    arguments.setdefault("preprocessing", "none")
    arguments |= {name: None for name in content.get("search") or {} if "__" in name and "steps" in content}
    return {**_signature(str(content.get("_target_", ""))), **arguments}


def _signature(target: str) -> dict[str, Any]:
    """Return the arguments of a class of this package with their literal defaults; its source is read, not imported."""
    module, _, class_name = target.rpartition(".")
    path = _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
    if not module.startswith("multilab.") or not path.is_file():
        return {}
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    bodies = [node.body for node in nodes if isinstance(node, ast.ClassDef) and node.name == class_name]
    for item in bodies[0] if bodies else ():
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            named = [*item.args.args[1:], *item.args.kwonlyargs]
            defaults = [*item.args.defaults, *item.args.kw_defaults]
            required = [None] * (len(named) - len(defaults))
            pairs = zip(named, [*required, *defaults], strict=True)
            return {a.arg: d.value if isinstance(d, ast.Constant) else None for a, d in pairs}
    return {}


def _method_arguments(given: list[str], current: str) -> list[str]:
    """Return the arguments of the method on the command line; of a switch both values, else the value it has."""
    chosen = [word.partition("=")[2] for word in given if word.startswith("method=")]
    arguments = arguments_of(chosen[-1] if chosen else "mlknn")
    name, equals, _ = current.partition("=")
    if not equals:
        return [f"method.{argument}=" for argument in arguments]
    value = arguments.get(name.removeprefix("method."))
    if name == "method.preprocessing":
        return [f"{name}={scaling}" for scaling in ("none", "minmax", "standard")]
    if isinstance(value, bool):
        return [f"{name}=true", f"{name}=false"]
    return [] if value is None or isinstance(value, list | dict) else [f"{name}={value}"]


def _choices(*values: str) -> Callable[[], list[str]]:
    return lambda: list(values)


_Values = Callable[[], list[str]]
_DATASETS: _Values = functools.partial(_names, "dataset")
_METHODS: _Values = functools.partial(_names, "method")
_PROTOCOLS: _Values = functools.partial(_names, "protocol")
_STUDIES: _Values = functools.partial(_names, "study")

_TUNE: dict[str, _Values] = {
    "tune.n_trials": _choices("20", "50", "100"),
    "tune.metric": metrics,
    "tune.folds": _choices("3"),
    "tune.order": _choices("1", "2"),
    "tune.sampler": _choices("tpe", "random", "grid"),
    "tune.timeout": _choices("600"),
    "tune.pruner": _choices("none", "median"),
}
_RUN: dict[str, _Values] = {
    "dataset": _DATASETS,
    "method": _METHODS,
    "protocol": _PROTOCOLS,
    "seed": _choices("0"),
    "observed": _choices("0.5"),
    "conventions": presets,
    "metrics": metrics,
    "publish": _choices("true", "false"),
    "tracking.uri": _choices("sqlite:///mlflow.db"),
    **_TUNE,
}


def _train(given: list[str], current: str) -> list[str]:
    if any(word.startswith("study=") for word in given):
        return _named(current, {"method": _METHODS})
    if current.startswith("method."):
        return _method_arguments(given, current)
    if current.startswith("metrics=") and not current.startswith("metrics=["):
        return ["metrics=["]
    return [*_named(current, {**_RUN, "study": _STUDIES}), "method.", "-m", "--cfg"]


def _tune(given: list[str], current: str) -> list[str]:
    if current.startswith("method."):
        return _method_arguments(given, current)
    return [*_named(current, {**_RUN, "tune.storage": _choices("sqlite:///trials.db")}), "method.", "-m"]


def _compare(given: list[str], current: str) -> list[str]:
    budgets, folds = _choices("90s", "10m", "2h"), _choices("3", "5", "10")
    values = {"dataset": _DATASETS, "methods": _METHODS, "budget": budgets, "metric": metrics, "cv": folds}
    return [*_named(current, values), "out="]


def _fit(given: list[str], current: str) -> list[str]:
    if current.startswith("method."):
        return _method_arguments(given, current)
    objectives = _choices("macro_f1", "micro_f1", "hamming_loss", "example_f1", "subset_accuracy")
    values = {**_RUN, "tune": _choices("20"), "decision": objectives, "metric": metrics}
    return [*_named(current, values), "method.", "--register", "--output"]


def _worker(given: list[str], current: str) -> list[str]:
    return [*_train(given, current), *_of_study("--lease", "--idle-exit", "--retry-failed")(given, current)]


def _of_study(*options: str) -> Callable[[list[str], str], list[str]]:
    return lambda given, current: [*_named(current, {"study": _STUDIES}), *options]


def _flags(*options: str, **values: Callable[[], list[str]]) -> Callable[[list[str], str], list[str]]:
    """Return a completion of options, whose values follow as the next word or after ``=``."""

    def complete(given: list[str], current: str) -> list[str]:
        name, equals, _ = current.partition("=")
        if equals and name in options:
            return [f"{name}={value}" for value in values.get(name.lstrip("-"), list)()]
        if given and given[-1].lstrip("-") in values:
            return values[given[-1].lstrip("-")]()
        return list(options)

    return complete


def _verbs(**after: Callable[[], list[str]]) -> Callable[[list[str], str], list[str]]:
    """Return a completion of sub-verbs and what follows them."""
    return lambda given, current: after.get(given[0], list)() if given else list(after)


def _cells(given: list[str], current: str) -> list[str]:
    filters = {"dataset": _DATASETS, "method": _METHODS}
    if not given:
        return ["list", "show", "why", "rekey", "clean"]
    if given[0] == "list":
        status = _choices("done", "outdated", "failed", "broken")
        return _named(current, {**filters, "status": status, "metric": metrics})
    if given[0] == "clean":
        return [*_named(current, filters), "--outdated", "--yes"]
    if given[0] == "rekey":
        return _named(current, {"study": _STUDIES, "accept": _METHODS})
    return [path.name[:12] for path in store_dir().glob(f"{current}*") if re.fullmatch("[0-9a-f]{64}", path.name)]


def _arena(given: list[str], current: str) -> list[str]:
    if not given:
        return list(_ARENA)
    values = {"study": _STUDIES}
    if given[0] == "rank":
        groups, domains = ("overall", "example", "label", "ranking"), ("text", "image", "audio", "biology", "medicine")
        values |= {"metric": lambda: [*groups, *metrics()], "sets": lambda: [*domains, *_DATASETS()]}
        values |= {"pool": _choices(*_POOLS, *(f"{name}-unseen" for name in _POOLS[2:])), "top": _choices("20")}
        values |= dict.fromkeys(("anchor", "champion"), _METHODS)
        values |= dict.fromkeys(_TRACKS, _STUDIES)
    return _named(current, {name: values.get(name, list) for name in _ARENA.get(given[0], ())})


_TRACKS = ("default", "tuned", "ensembled", "costs", "stack_costs")
_POOLS = ("default", "tuned", "ensembled", "all")
_ARENA = {
    "rank": ("metric", "sets", "pool", "top", *_TRACKS, "anchor", "champion", "out"),
    "page": ("out",),
    "summary": (),
    "portfolio": ("study", "k", "seconds", "out"),
}


def _results(given: list[str], current: str) -> list[str]:
    values = {"dataset": _DATASETS, "method": _METHODS, "protocol": _PROTOCOLS, "metric": metrics}
    return [*_named(current, {**values, "conventions": presets}), "--csv", "--latex"]


_ARGUMENTS_OF_VERB: dict[str, Callable[[list[str], str], list[str]]] = {
    "train": _train,
    "tune": _tune,
    "compare": _compare,
    "fit": _fit,
    "predict": _flags("--output", "--tracking-uri"),
    "serve": _flags("--port", "--max-mb", "--tracking-uri"),
    "explain": _flags("--label", "--metric", "--repeats", "--output", "--tracking-uri"),
    "monitor": _flags("--alpha", "--min-effect", "--all", "--json", "--tracking-uri"),
    "card": _flags("--output", "--html", "--tracking-uri"),
    "worker": _worker,
    "results": _results,
    "arena": _arena,
    "cells": _cells,
    "new": _verbs(study=list, method=_choices("--outside", "--family")),
    "regressions": _flags("--baseline", "--metric", "--alpha", "--tolerance", "--markdown", metric=metrics),
    "report": _of_study("--headline", "--readme"),
    "gate": _flags(
        *("--study", "--methods", "--sample", "--seed", "--store", "--accept", "--verbose"),
        study=_STUDIES,
        methods=_METHODS,
    ),
    "claims": _flags("--study", study=_STUDIES),
    "audit": _flags(
        "--metric",
        "--dataset",
        "--n",
        "--q",
        "--cardinality",
        "--unlabelled",
        "--runs",
        "--sizes",
        "--cards",
        "--names",
        "--faults",
        "--json",
        metric=metrics,
        dataset=_DATASETS,
    ),
    "datasets": _verbs(list=list, show=_DATASETS, fetch=_DATASETS, check=list, add=list),
    "methods": _verbs(list=list, show=_METHODS),
    "completion": _verbs(bash=list, zsh=list, fish=list),
    "keys": _of_study("--adopt"),
    **{v: _of_study() for v in ("run", "publish", "preprocess", "base_scores", "analyses", "evaluate", "stats")},
}
