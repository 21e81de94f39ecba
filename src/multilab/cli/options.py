"""Shared parts of commands: types of values with their completion, and options."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from multilab.cli import completion
from multilab.core.files import not_a_file

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Name(click.ParamType):
    """A name, or several separated by commas. The command itself checks that they exist.

    Parameters
    ----------
    kind : str
        What the name names, for the help.
    known : callable
        Returns the names that completion offers.
    """

    def __init__(self, kind: str, known: Callable[[], list[str]]) -> None:
        self.name = kind
        self.known = known

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that continue a text, after a comma those that are not in the list yet."""
        head, comma, _ = incomplete.rpartition(",")
        names = sorted(set(self.known()) - set(head.split(",")))
        return [CompletionItem(head + comma + name) for name in names if (head + comma + name).startswith(incomplete)]


class Duration(click.ParamType):
    """A time such as ``90s``, ``10m`` or ``2h``, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(value).strip().lower())
        if match is None or match[2] not in _UNITS or not 0 < float(match[1]) < math.inf:
            self.fail(f"must be a time such as 90s, 10m or 2h, not {str(value)!r}", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


class WholeNumber(click.IntRange):
    """An integer of a range, ``N`` in help."""

    name = "integer"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the placeholder that help prints."""
        return "N"


DATASET = Name("name", functools.partial(completion.names, "dataset"))
METHOD = Name("name", functools.partial(completion.names, "method"))
STUDY = Name("name", functools.partial(completion.names, "study"))
PROTOCOL = Name("name", functools.partial(completion.names, "protocol"))
ENGINE = Name("name", functools.partial(completion.names, "engine"))
METRIC = Name("name", completion.metrics)
CONVENTIONS = Name("name", completion.presets)
MODEL = Name("model", completion.models)
CELL = Name("key", completion.cells)
COUNT, SEED, FOLDS = (WholeNumber(min=least) for least in (1, 0, 2))
LEVEL, SHARE = click.FloatRange(0, 1, min_open=True, max_open=True), click.FloatRange(0, 1)
FILE = click.Path(path_type=Path)
FILE.name = "file"
LEVEL.name = SHARE.name = "number"  # the word in help and errors, not "float range"


def study_option(text: str = "The study.", default: str = "quick") -> Callable[..., Any]:
    """Return the option ``--study`` with a default."""
    return click.option("--study", type=STUDY, default=default, show_default=True, help=text)


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the cells of a command run."""

    @click.option(
        "--engine",
        type=ENGINE,
        default="local",
        show_default=True,
        envvar="MULTILAB_ENGINE",
        help="Where cells run: conf/engine/NAME.yaml, local or dask.",
    )
    @click.option("--engine-address", metavar="ADDRESS", help="Scheduler of the engine dask: tls://HOST:8786.")
    @functools.wraps(function)
    def on_engine(*arguments: Any, engine: str, engine_address: str | None, **options: Any) -> Any:
        if engine == "local" and engine_address is None:
            return function(*arguments, **options)
        from multilab.cells.engines import load_engine, using

        with using(load_engine(engine, engine_address)):
            return function(*arguments, **options)

    return on_engine


def _writable(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse a folder, a pipe or a device: renaming the finished file would replace it."""
    if value is not None and (kind := not_a_file(value)):
        raise click.BadParameter(f"{value} is {kind}: name a file to write.")
    return value


fresh_option = click.option(
    "--fresh", is_flag=True, help="Compute stored results again, compare, and replace those that differ."
)
output_option = functools.partial(click.option, "-o", "--output", metavar="FILE", callback=_writable)
tracking_option = click.option("--tracking-uri", metavar="URI", help="MLflow store (default: as for `multilab train`).")
model_argument = click.argument("model", type=MODEL)
