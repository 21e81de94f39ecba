"""Completion of words in the shell: verbs, options, datasets, methods and their arguments, protocols, studies.

  bash: eval "$(multilab completion bash)"                       in ~/.bashrc
  zsh:  eval "$(multilab completion zsh)"                        in ~/.zshrc, after compinit
  fish: multilab completion fish > ~/.config/fish/completions/multilab.fish

The script asks `multilab completion candidates LINE` at every TAB; that reads names of files and one YAML only.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from multilab.ground import MultilabError, conf_dir

__all__ = ["candidates", "main"]

_BASH = r"""_multilab_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" full cut
    full="${line##*[[:space:]]}"
    # Bash splits words at the characters of COMP_WORDBREAKS (= and :) and replaces only what follows the last of them.
    cut="${full%"$2"}"
    local IFS=$'\n'
    COMPREPLY=($("$1" completion candidates "$line" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    case "${COMPREPLY[*]}" in *[=.]|*\[*) compopt -o nospace ;; esac
}
complete -o default -F _multilab_complete multilab
"""

_ZSH = r"""#compdef multilab
_multilab_complete() {
    local -a found open closed
    found=("${(@f)$(${words[1]} completion candidates "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)}")
    open=(${(M)found:#(*[=.]|*\[*)})
    closed=(${found:#(*[=.]|*\[*)})
    (( $#open )) && compadd -Q -S '' -- $open
    (( $#closed )) && compadd -Q -- $closed
    (( $#open + $#closed )) || _files
}
compdef _multilab_complete multilab
"""

_FISH = r"""function __multilab_complete
    set -l tokens (commandline -opc)
    $tokens[1] completion candidates (commandline -cp) 2>/dev/null
end
complete -c multilab -f -a '(__multilab_complete)'
complete -c multilab -F -n '__fish_seen_subcommand_from check'
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def main(argv: list[str]) -> int:
    """`multilab completion bash|zsh|fish`."""
    if len(argv) == 2 and argv[0] == "candidates":
        print("\n".join(candidates(argv[1])))
        return 0
    if len(argv) != 1 or argv[0] not in _SCRIPTS:
        raise CompletionError(f"expected: multilab completion {'|'.join(_SCRIPTS)} (multilab completion --help)")
    print(_SCRIPTS[argv[0]], end="")
    return 0


class CompletionError(MultilabError, ValueError):
    """A shell that there is no script for."""


def candidates(line: str) -> list[str]:
    """Return the words that can stand where a command line ends.

    Parameters
    ----------
    line : str
        The command line up to the cursor, ``multilab`` included.
    """
    words = line.split()
    current = "" if not words or line[-1:].isspace() else words.pop()
    current = current.lstrip("'\"")
    words = words[1:]
    if not words:
        return _starting([*_VERB_WORDS, "--help", "--version"], current)
    complete = _VERB_WORDS.get(words[0])
    options = complete(words[1:], current) if complete else []
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
    """Return the names of a group of settings; of datasets also those in ``MULTILAB_CARDS``."""
    from multilab.datasets.catalogue import card_folders

    folders = card_folders() if group == "dataset" else [conf_dir() / group]
    return [path.stem for folder in folders for path in folder.glob("*.yaml")]


def _source(module: str) -> ast.Module | None:
    """Return the syntax tree of a module of this package; nothing is imported."""
    path = Path(__file__).parents[2].joinpath(*module.split(".")).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else None


def metrics() -> list[str]:
    """Return the names of the metrics: the first entries of the rows of their table."""
    tree = _source("multilab.metrics.registry")
    tables = [node.value for node in tree.body if isinstance(node, ast.AnnAssign)] if tree else []
    rows = [row for table in tables if isinstance(table, ast.Tuple) for row in table.elts if isinstance(row, ast.Tuple)]
    return [str(row.elts[0].value) for row in rows if isinstance(row.elts[0], ast.Constant)]


def presets() -> list[str]:
    """Return the names of the conventions of metrics."""
    tree = _source("multilab.metrics.conventions")
    for node in tree.body if tree else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "PRESETS":
            keys = [key for found in ast.walk(node) if isinstance(found, ast.Dict) for key in found.keys]
            return [str(key.value) for key in keys if isinstance(key, ast.Constant)]
    return []


@functools.cache
def arguments_of(method: str) -> dict[str, Any]:
    """Return the arguments of a method by dotted name: those of its YAML with their values, then the class's others."""
    try:
        import yaml
    except ImportError:  # the core install
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C library is quicker, where it is there
    try:
        content = yaml.load((conf_dir() / "method" / f"{method}.yaml").read_text(), loader)
    except (OSError, yaml.YAMLError):
        return {}
    lab = ("_target_", "title", "reference", "notes", "search", "small", "keep", "steps")
    arguments: dict[str, Any] = {}
    for name, value in content.items():
        nested = isinstance(value, dict) and value
        entries = {f"{name}.{inner}": v for inner, v in value.items()} if nested else {name: value}
        arguments |= {k: v for k, v in entries.items() if name not in lab and not k.endswith("_target_")}
    arguments.setdefault("preprocessing", "none")
    arguments |= {name: None for name in content.get("search") or {} if "__" in name and "steps" in content}
    module, _, class_name = str(content.get("_target_", "")).rpartition(".")
    return {**_signature(module, class_name), **arguments}


def _signature(module: str, class_name: str) -> dict[str, Any]:
    """Return the arguments of a class of this package with their literal defaults, read from its source."""
    tree = _source(module) if module.startswith("multilab.") else None
    for node in tree.body if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                    named = [*item.args.args[1:], *item.args.kwonlyargs]
                    defaults = [*item.args.defaults, *item.args.kw_defaults]
                    required = [None] * (len(named) - len(defaults))
                    pairs = zip(named, [*required, *defaults], strict=True)
                    return {a.arg: d.value if isinstance(d, ast.Constant) else None for a, d in pairs}
    return {}


def _method_words(words: list[str], current: str) -> list[str]:
    """Return the arguments of the method on the command line; of a switch both values, else the value it has."""
    chosen = [word.partition("=")[2] for word in words if word.startswith("method=")]
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
    "conventions": presets,
    "metrics": metrics,
    "publish": _choices("true", "false"),
    "tracking.uri": _choices("sqlite:///mlflow.db"),
    **_TUNE,
}


def _train(words: list[str], current: str) -> list[str]:
    if any(word.startswith("study=") for word in words):
        return _named(current, {"method": _METHODS})
    if current.startswith("method."):
        return _method_words(words, current)
    if current.startswith("metrics=") and not current.startswith("metrics=["):
        return ["metrics=["]
    return [*_named(current, {**_RUN, "study": _STUDIES}), "method.", "-m", "--cfg"]


def _tune(words: list[str], current: str) -> list[str]:
    if current.startswith("method."):
        return _method_words(words, current)
    return [*_named(current, {**_RUN, "tune.storage": _choices("sqlite:///trials.db")}), "method.", "-m"]


def _of_study(*options: str) -> Callable[[list[str], str], list[str]]:
    return lambda words, current: [*_named(current, {"study": _STUDIES}), *options]


def _plan(words: list[str], current: str) -> list[str]:
    return _named(current, {"study": lambda: [*_STUDIES(), "all"]})


def _flags(*options: str, **values: Callable[[], list[str]]) -> Callable[[list[str], str], list[str]]:
    """Return a completion of options, whose values follow as the next word or after ``=``."""

    def complete(words: list[str], current: str) -> list[str]:
        name, equals, _ = current.partition("=")
        if equals and name in options:
            return [f"{name}={value}" for value in values.get(name.lstrip("-"), list)()]
        if words and words[-1].lstrip("-") in values:
            return values[words[-1].lstrip("-")]()
        return list(options)

    return complete


def _verbs(**after: Callable[[], list[str]]) -> Callable[[list[str], str], list[str]]:
    """Return a completion of sub-verbs and what follows them."""
    return lambda words, current: after.get(words[0], list)() if words else list(after)


def _cells(words: list[str], current: str) -> list[str]:
    filters = {"dataset": _DATASETS, "method": _METHODS}
    if not words:
        return ["list", "show", "why", "clean"]
    if words[0] == "list":
        status = _choices("done", "outdated", "failed", "broken")
        return _named(current, {**filters, "status": status, "metric": metrics})
    if words[0] == "clean":
        return [*_named(current, filters), "--outdated", "--yes"]
    store = Path(os.environ.get("MULTILAB_CELLS") or ".cells").expanduser()
    return [path.name[:12] for path in store.glob(f"{current}*") if re.fullmatch("[0-9a-f]{64}", path.name)]


def _results(words: list[str], current: str) -> list[str]:
    values = {"dataset": _DATASETS, "method": _METHODS, "protocol": _PROTOCOLS, "metric": metrics}
    return [*_named(current, {**values, "conventions": presets}), "--csv", "--latex"]


_VERB_WORDS: dict[str, Callable[[list[str], str], list[str]]] = {
    "train": _train,
    "tune": _tune,
    "results": _results,
    "cells": _cells,
    "plan": _plan,
    "report": _of_study("--headline", "--readme"),
    "gate": _flags(
        "--study", "--methods", "--sample", "--seed", "--store", "--accept", study=_STUDIES, methods=_METHODS
    ),
    "claims": _flags("--study", study=_STUDIES),
    "datasets": _verbs(list=list, show=_DATASETS, fetch=_DATASETS, check=list),
    "methods": _verbs(list=list, show=_METHODS),
    "completion": _verbs(bash=list, zsh=list, fish=list),
    "keys": _verbs(),
    **{v: _of_study() for v in ("run", "publish", "preprocess", "base_scores", "analyses", "evaluate", "stats")},
}
