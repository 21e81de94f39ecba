"""The command line: ``multilab <stage or verb> [arguments]``."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from multilab.commands.file_arguments import with_registered_files
from multilab.core import MultilabError, experiment_dir
from multilab.core.messages import closest, printable
from multilab.core.shell import command
from multilab.core.text import docstring

__all__ = ["main"]

_VERBS = {
    "run": "all stages of a study, without DVC                   run study=quick",
    "new": "the files of a new study or method                   new study|method NAME [--outside]",
    "train": "fit and score a method; -m sweeps                    train dataset=emotions method=mlwse_l1",
    "worker": "compute the cells of a study with other workers      worker study=NAME",
    "tune": "search hyperparameters on a dataset                  tune dataset=emotions method=mlwse_l21",
    "compare": "a portfolio on one dataset, in a time budget         compare dataset=emotions budget=5m",
    "fit": "a model on all rows, scored, saved, registered       fit dataset=emotions method=mlknn --register mine",
    "predict": "decisions and probabilities for the rows of a file   predict models:/mine@champion new.csv -o out.csv",
    "monitor": "test new rows for drift; exit code for CI            monitor models:/mine@champion new.csv",
    "card": "the card of a model: data, metrics, limits           card models:/mine@champion -o card.md",
    "explain": "which columns a model needs, label by label          explain models:/mine@champion new.csv --label L",
    "serve": "a model over HTTP on this machine                    serve models:/mine@champion [--port 5001]",
    "results": "tables of the stored results                         results dataset=emotions [--csv|--latex]",
    "methods": "list the methods, show their arguments               methods list|show",
    "datasets": "list the datasets, add a file of your own            datasets list|show|fetch|check|add",
    "report": "the page of a study again, from committed files      report study=mlwse-core",
    "publish": "show a study in MLflow                               publish study=quick",
    "regressions": "methods that are worse than in an earlier compare    regressions NOW.json --baseline OLD.json",
    "gate": "recompute and compare with the committed numbers     gate [--study mlwse-core --sample 20]",
    "claims": "values and claims of the papers, with verdicts       claims [--study mlwse]",
    "audit": "check a published table by arithmetic                audit table.csv [--n 917 --q 14]",
    "arena": "leaderboards, pages, portfolios of stacks  arena rank|page|summary|portfolio",
    "cells": "list, compare, copy and remove stored results        cells list|show|why|add|rekey|clean|push|pull",
    "completion": "the script for completion in your shell              completion bash|zsh|fish",
    "keys": "(stage) write the keys of the work of each stage",
    "preprocess": "(stage) fetch, verify and parse the data of a study",
    "base_scores": "(stage) out-of-fold scores that stacking methods read",
    "analyses": "(stage) analyses of a study in addition to scores: the data of its figures",
    "evaluate": "(stage) metrics from the stored scores",
    "stats": "(stage) ranks, tests, figures and the report",
}

_HELP = """multilab: a laboratory for multi-label learning.

usage: multilab <command> [arguments]

{verbs}

First steps:
{steps}

multilab train --help lists all settings, datasets and methods."""

_CHECKOUT_STEPS = (
    ("make reproduce", "the quick study, from nothing to a report"),
    ("{dvc} repro reports/mlwse-core/dvc.yaml", "real data: MULTILAB_DATA names a mirror, else downloads"),
    ("make ui", "look at the runs in MLflow"),
)
_STEPS = (
    ("{multilab} datasets list", "the datasets"),
    ("{multilab} run study=quick", "the quick study, from nothing to a report"),
    ("{multilab} train dataset=emotions method=mlknn", "one method on one dataset"),
)
_CORE_STEPS = (
    ("{multilab} datasets list", "the datasets"),
    ('pip install "multilab[lab]"', "what the core install leaves out: studies, searches, MLflow, reports"),
)

_LABORATORY = (
    *("baycomp", "dvc", "hydra", "jinja2", "matplotlib", "mlflow", "omegaconf", "optuna", "rich", "skops"),
    "voluptuous",
)
_HYDRA_VERBS = ("train", "tune", "fit")  # Hydra prints their help


def main(argv: list[str] | None = None) -> int:
    """Run one command; exit code 2 and one line for anything a user can fix."""
    try:
        if argv is None:
            _use_code_of_experiment()
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `multilab cells list | head`; the interpreter will flush once more, into nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _use_code_of_experiment() -> None:
    """Start again with the code in the temporary copy of a DVC experiment, if this is not the code that runs.

    An editable installation imports the code of the repository, which may have changed since ``dvc exp run --queue``.
    """
    copy = experiment_dir()
    source = str(copy / "src") if copy else ""
    path = os.environ.get("PYTHONPATH", "")
    if copy and (copy / "src" / "multilab" / "cli.py").is_file() and path.partition(os.pathsep)[0] != source:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [source, path]))}
        os.execve(sys.executable, [sys.executable, "-m", "multilab", *sys.argv[1:]], environ)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    if argv[0] == "--version":
        from multilab import __version__

        print(__version__)
        return 0
    verb, rest = argv[0], argv[1:]
    if verb not in _VERBS:
        return _refuse(f"multilab: {_unknown_verb(verb)} (multilab --help lists them)")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # parallel over cells, one BLAS thread inside each
    return _run(verb, rest)


def _run(verb: str, rest: list[str]) -> int:
    try:
        module = importlib.import_module(f"multilab.stages.{verb}")
        module.__doc__ = module.__doc__ or docstring(module)  # most commands print their own
        if {"-h", "--help"} & set(rest) and verb not in _HYDRA_VERBS and not hasattr(module, "argparse"):
            print(_stage_help(module))
            return 0
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return module.main(with_registered_files(rest))
    except KeyboardInterrupt:
        print("stopped; what is finished is kept, the next run continues", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        message = _one_line(verb, error)
        if message is None or os.environ.get("MULTILAB_TRACEBACK"):
            raise
        return _refuse(message)


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print a warning as one line, without Python's file and line number, control characters escaped."""
    print(printable(f"{category.__name__}: {message}"), file=sys.stderr)


def _refuse(message: str) -> int:
    """Print one line to stderr, control characters escaped; return the exit code of what a user can fix."""
    print(printable(message), file=sys.stderr)
    return 2


def _one_line(verb: str, error: Exception) -> str | None:
    """Return the message of an error that a user can fix, ``None`` for a fault of the program."""
    if isinstance(error, AttributeError) and isinstance(error.__cause__, ModuleNotFoundError):
        error = error.__cause__  # of `multilab.core.lazy.lazy_names`
    name = type(error).__name__
    if isinstance(error, MultilabError):
        return f"{name}: {error}"
    if isinstance(error, ModuleNotFoundError) and (missing := (error.name or "").partition(".")[0]) in _LABORATORY:
        return f'multilab {verb} needs {missing}, which the core install leaves out: pip install "multilab[lab]"'
    if isinstance(error, OSError) and error.errno is not None:
        path = f" {error.filename}:" if error.filename else ""
        return f"{name}:{path} {error.strerror}{_ADVICE.get(error.errno, '')}"
    if type(error).__module__.partition(".")[0] in ("mlflow", "requests", "sqlalchemy", "sqlite3"):
        return f"{name}: {str(error)[:500]} (results are kept; tracking.uri or MLFLOW_TRACKING_URI names another store)"
    return None


_ELSEWHERE = "; name a writable folder with MULTILAB_CELLS (results) or MULTILAB_CACHE (data)"
_FULL = "; free some space and run again: finished cells are kept"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _ELSEWHERE,
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.ENOTDIR: _ELSEWHERE,
    errno.EEXIST: _ELSEWHERE,
}


def _help() -> str:
    """Return the help of the program: its first steps are those possible in this folder with this installation."""
    verbs = "\n".join(f"  {verb:<12}{text}" for verb, text in _VERBS.items())
    steps: tuple[tuple[str, str], ...] = _CORE_STEPS
    if _has_laboratory():
        steps = _CHECKOUT_STEPS if Path("Makefile").is_file() and Path("dvc.yaml").is_file() else _STEPS
    commands = {"multilab": command("multilab"), "dvc": command("dvc")}
    rows = [(step.format(**commands), text) for step, text in steps]
    width = max(len(step) for step, _ in rows)
    return _HELP.format(verbs=verbs, steps="\n".join(f"  {step:<{width}}  {text}" for step, text in rows))


def _has_laboratory() -> bool:
    try:
        return find_spec("hydra") is not None
    except ImportError:
        return False


def _stage_help(module: ModuleType) -> str:
    """Return the help of a command: what it does, and its arguments."""
    return f"{docstring(module)}\n{docstring(module.main)}".replace("``", "`")


def _unknown_verb(verb: str) -> str:
    """Return the message about a command that does not exist: a like one, or those that have such a subcommand."""
    owners = [
        f"{owner} {verb}"
        for owner, text in _VERBS.items()
        if verb in re.split(r"[| ]", text.rpartition(f"{owner} ")[2]) and "|" in text
    ]
    match = closest(verb, _VERBS)
    meant = owners or ([match] if match else [])
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
    return f"no command is called {verb!r}{hint}"


if __name__ == "__main__":
    sys.exit(main())
