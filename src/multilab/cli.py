"""The command line: ``multilab <stage or verb> [arguments]``."""

from __future__ import annotations

import importlib
import os
import sys

__all__ = ["main"]

_VERBS = {
    "plan": "compose studies into params.yaml, for dvc repro       plan study=quick|mlwse-core|all",
    "run": "all stages of a study, without DVC                    run study=quick",
    "train": "fit and score by hand; -m sweeps                      train dataset=emotions method=mlwse_l1",
    "tune": "search hyperparameters on a dataset                   tune dataset=emotions method=mlwse_l21",
    "results": "tables of what is stored                              results dataset=emotions [--csv|--latex]",
    "methods": "what methods there are, and their arguments           methods list|show",
    "datasets": "what data there are, and how yours reads              datasets list|show|fetch|check",
    "report": "rebuild the page of a study from its committed files  report study=mlwse-core",
    "publish": "show a study in MLflow                                publish study=quick",
    "gate": "recompute and compare with the committed numbers      gate [--study mlwse-core --sample 20]",
    "claims": "printed cells and claims of the papers, and what became of them  claims [--study mlwse]",
    "cells": "look into the store of results                        cells list|show|why|clean",
    "completion": "the script that completes words in your shell      completion bash|zsh|fish",
    "keys": "(stage) write what identifies the work of each stage",
    "preprocess": "(stage) fetch, verify and parse the data of a study",
    "base_scores": "(stage) out-of-fold scores that stacking methods read",
    "analyses": "(stage) what a study analyses beyond scores: the data of its figures",
    "evaluate": "(stage) metrics from the stored scores",
    "stats": "(stage) ranks, tests, figures and the report",
}

_HELP = """multilab: a laboratory for multi-label learning.

usage: multilab <command> [arguments]

{verbs}

First steps:
  make reproduce                               the quick study, from nothing to a report
  multilab plan study=mlwse-core && dvc repro  real data (MULTILAB_DATA names a mirror; else they are downloaded)
  mlflow ui --backend-store-uri sqlite:///mlflow.db

multilab train --help lists all settings, datasets and methods."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; exit code 2 and one line for anything a user can mend."""
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `multilab cells list | head`; the interpreter will flush once more, into nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_HELP.format(verbs="\n".join(f"  {verb:<12}{text}" for verb, text in _VERBS.items())))
        return 0
    if words[0] == "--version":
        from multilab import __version__

        print(__version__)
        return 0
    verb, rest = words[0], words[1:]
    if verb not in _VERBS:
        import difflib

        close = difflib.get_close_matches(verb, _VERBS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        print(f"multilab: no command is called {verb!r}{hint} (multilab --help lists them)", file=sys.stderr)
        return 2
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # parallel over cells, one BLAS thread inside each
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    return _run(verb, rest)


def _run(verb: str, rest: list[str]) -> int:
    from multilab.ground import MultilabError

    module = importlib.import_module(f"multilab.stages.{verb}")
    if rest in (["-h"], ["--help"]) and verb not in ("train", "tune"):
        print(f"{module.__doc__}\n{module.main.__doc__}")
        return 0
    try:
        return module.main(rest)
    except MultilabError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; what is finished is kept, the next run continues", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
