"""Spellings of earlier versions, ``multilab run study=quick``: the command that replaces each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

_COMMANDS = {
    "run": "study run",
    "report": "study report",
    "claims": "study claims",
    "publish runs": "study publish --runs",
    "publish": "study publish",
    "keys": "study keys",
    "preprocess": "study preprocess",
    "base_scores": "study base-scores",
    "analyses": "study analyses",
    "evaluate": "study evaluate",
    "stats": "study stats",
    "new study": "study new",
    "new method": "methods new",
    "cells": "store",
}

_OPTIONS = {
    "--out": "--output",
    "--methods": "--method",
    "--alpha": "--level",
    "--label-columns": "--labels",
    "--protocol-kfold": "--cv",
    "--seconds": "--budget",
}
"""Options, and names of ``name=value`` after dashes in front, that are called otherwise now."""

_WITH_EQUALS = ("--cost", "--set")
"""Options whose value is ``name=value`` today."""

_SETTINGS = ("train", "tune")
"""Commands that take ``name=value``."""


def translated(argv: Sequence[str]) -> str | None:
    """Return the command line of today that an old one means, ``None`` if nothing in it is old."""
    words = _without_worker(list(argv))
    for old, new in _COMMANDS.items():
        if words[: len(old.split())] == old.split():
            words[: len(old.split())] = new.split()
            break
    if words[:1] == ["train"] and any(word.startswith("study=") for word in words):
        words[:1] = ["study", "train"]
    of_study = any(word.startswith("study=") for word in words)
    takes_settings = " ".join(words[:2]).startswith(_SETTINGS) and not of_study
    if words[:1] == ["gate"]:  # its tolerance is fixed
        words = [word for word in words if not word.startswith("level=")]
    today = [takes_settings or before in _WITH_EQUALS for before in ["", *words[:-1]]]
    words = [new for word, kept in zip(words, today, strict=True) for new in ([word] if kept else _word(word))]
    if words[:1] == ["monitor"]:
        words = ["--output" if word == "--json" else word for word in words]
    return shlex.join(["multilab", *words]) if words != list(argv) else None


def _without_worker(words: list[str]) -> list[str]:
    """Return the words of the command that computes what workers on a shared folder did: on a Dask cluster."""
    rest = words[1:] if words[:1] == ["worker"] else words[2:] if words[:2] == ["study", "worker"] else None
    if rest is None:
        return words
    kept, named = [], iter(rest)
    for word in named:
        if word == "--lease":
            next(named, None)
        elif not word.startswith(("--lease=", "--idle-exit", "--retry-failed")):
            kept.append(word)
    if any("=" in word and not word.startswith(("-", "study=")) for word in kept):
        return ["train", "-m", *kept, "engine=dask"]
    return ["study", "run", *kept, "--engine", "dask"]


def _word(word: str) -> list[str]:
    """Return the words that replace one of an old command line."""
    name, equals, value = word.partition("=")
    if not equals or name.startswith(("-", "{", ".", "/")):
        return [_OPTIONS.get(name, name) + equals + value]
    if name.startswith("method."):
        return ["--set", f"{name.removeprefix('method.')}={value}"]
    if word == "retry=unfinished":
        return ["--retry-unfinished"]
    option = f"--{name.replace('_', '-').replace('.', '-')}"
    return [_OPTIONS.get(option, option), value]
