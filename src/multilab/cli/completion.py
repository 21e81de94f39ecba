"""Shell completion: available names, read without heavy imports, and the scripts for the shells."""

from __future__ import annotations

import ast
import functools
import os
import re
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

from multilab.core import conf_dir, store_dir

_PACKAGE = Path(__file__).parents[1]
_SHELLS = ("bash", "zsh", "fish")


class _Line(ShellComplete):
    """Completion of a whole line, which the script of the shell passes unsplit, as shells split words differently."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and the beginning of this one."""
        line = os.environ["MULTILAB_LINE"]
        words = split_arg_string(line)
        incomplete = "" if not words or line[-1].isspace() else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return a candidate as a line."""
        return str(item.value) if item.type == "plain" else ""


for _shell in _SHELLS:
    add_completion_class(type(f"_{_shell.title()}", (_Line,), {"name": _shell}))


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for your shell.

    \b
    bash: eval "$(multilab completion bash)"      in ~/.bashrc
    zsh:  eval "$(multilab completion zsh)"       in ~/.zshrc, after compinit
    fish: multilab completion fish > ~/.config/fish/completions/multilab.fish
    """
    print((Path(__file__).parent / "templates" / f"completion.{shell}").read_text(encoding="utf-8"), end="")


def names(group: str) -> list[str]:
    """Return the names in a group of settings. Datasets include those of ``MULTILAB_CARDS``, methods the entrants."""
    from multilab.datasets.catalogue import card_folders

    folders = card_folders() if group == "dataset" else [conf_dir() / group, Path("conf") / group]
    folders = [*folders, conf_dir() / "entrant"] if group == "method" else folders
    return [path.stem for folder in folders for path in folder.glob("*.yaml")]


def metrics() -> list[str]:
    """Return the names of the metrics of ``score_all``: the functions that are decorated by ``@metric``, sorted."""
    texts = (path.read_text(encoding="utf-8") for path in (_PACKAGE / "metrics").glob("*.py"))
    decorated = [match for text in texts for match in re.findall(r"(?ms)^@metric\((.*?)^def (\w+)", text)]
    return sorted(name for arguments, name in decorated if "standard" not in arguments)


def presets() -> list[str]:
    """Return the names of the conventions of metrics: the keys of ``PRESETS``."""
    text = (_PACKAGE / "metrics" / "conventions.py").read_text(encoding="utf-8")
    return re.findall(r'(?m)^        "(\w+)": ', text.partition("\nPRESETS")[2].partition("\n)")[0])


def cells() -> list[str]:
    """Return the first digits of the keys of the stored cells."""
    return [path.name[:12] for path in store_dir().glob("*") if re.fullmatch("[0-9a-f]{64}", path.name)]


def models() -> list[str]:
    """Return the addresses of the registered models that have an alias, from the database of this folder."""
    import sqlite3

    if not Path("mlflow.db").is_file():
        return []
    with closing(sqlite3.connect("file:mlflow.db?mode=ro", uri=True)) as database, suppress(sqlite3.Error):
        rows = database.execute("select name, alias from registered_model_aliases order by name, alias")
        return [f"models:/{name}@{alias}" for name, alias in rows]
    return []


@functools.cache
def arguments_of(method: str) -> dict[str, Any]:
    """Return the arguments of a method by dotted name: those in its YAML with their values, then the other ones."""
    try:
        from multilab.core.settings import YAMLError, parse_yaml
    except ImportError:  # the core install
        return {}
    folder = "entrant" if (conf_dir() / "entrant" / f"{method}.yaml").is_file() else "method"
    try:
        content = parse_yaml((conf_dir() / folder / f"{method}.yaml").read_text("utf-8"))
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
    """Return the arguments of a class of this package with their literal defaults, from its source, without import."""
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
