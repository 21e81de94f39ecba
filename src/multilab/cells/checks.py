"""Stored results that other files have computed: found by the digests in their records, recomputed and compared.

A key holds declared versions, so an edit of the package without a raised version moves no key. `multilab gate` names
the class that should have raised it; this is the second line of defence. A record has the digest of every file that may
decide a result and was loaded by the process that computed it. A command that meets results of other files recomputes
a few of each class. Equal ones are marked beside the cells, a different one ends the command.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from multilab.cells.cell import Cell
from multilab.cells.engines import current, using
from multilab.cells.errors import DifferentResultError
from multilab.cells.inventory import Inventory, StoredCell, check_runnable, note_earlier
from multilab.cells.loaded_code import files_today, reached
from multilab.cells.method import class_names
from multilab.cells.records import recorded_code
from multilab.cells.store import Store
from multilab.core import MultilabError, canonical_json, json_digest
from multilab.core.messages import printable

__all__ = [
    "Changed",
    "advice",
    "changed_cells",
    "changed_results",
    "check_met",
    "note",
    "recompute",
    "refresh",
    "sample",
    "standing",
]

_EQUAL = 1e-6
"""As the gate: one version of the libraries gives scores this close on any processor."""
_SECONDS = 1.0 if "DVC_STAGE" in os.environ else 10.0
"""What one command may spend here; a pipeline has several."""

Item = Any
"""A cell, or a unit of an analysis."""
Run = Callable[[Sequence[Item], Store, float], object]
"""What computes items in a store within some seconds; `recompute` looks into the store for what it made."""

# ---------------------------------------------------------------- which results are those of other files


@dataclass
class Changed:
    """A stored result that other files have computed.

    Attributes
    ----------
    item : Cell or Unit
    group : str
        The classes that compute it, with the steps around them: ``MLkNN, tuned``.
    files : dict of str to (str or None)
        Today's digests of the files that have changed, None of a file that is gone; also of replaced base scores.
    seconds : float
        What it took, infinite if that is not known.
    mark : Path
        Marker file. It exists if the stored result was recomputed with these files and was equal.
    """

    item: Item
    group: str
    files: dict[str, str | None]
    seconds: float
    mark: Path

    @property
    def equal(self) -> bool:
        """Whether it was recomputed with today's files."""
        return self.mark.is_file()


def changed_results(keys: Iterable[str], store: Store, item_of: Callable[[str], Item | None]) -> list[Changed]:
    """Return the stored results among some keys that other files have computed.

    ``item_of`` returns the cell or unit of a key, None if there is none today.
    """
    today: dict[str, str | None] = {}
    reach: dict[str, frozenset[str]] = {}
    changed = []
    for key in keys:
        today = today or files_today()
        record = store.record(key)
        code = recorded_code(record)
        files = {name: today.get(name) for name, old in code.files.items() if today.get(name) != old}
        replaced: dict[str, str | None] = {}
        for read, then in code.reads.items():
            if (now := store.arrays_digest(read)[:12]) not in ("", then):
                replaced[f"base scores {read[:12]}"] = now
        item = item_of(key) if files or replaced else None
        if item is None or (not isinstance(item, Cell) and item.measures_time):
            continue
        if (computed_by := _computed_by(item)) not in reach:
            reach[computed_by] = reached(item)
        files = {file: now for file, now in files.items() if now is None or file in reach[computed_by]}
        if files := files | replaced:
            # Its name covers the stored and the changed files, so another edit or result needs another check.
            mark = store.root / ".checked" / f"{key}.{json_digest([store.digests(key), files])[:16]}"
            changed.append(Changed(item, _group(item), files, _seconds(record), mark))
    return changed


def _seconds(record: Mapping[str, Any]) -> float:
    seconds: Any = record.get("cell_seconds", record.get("fit_seconds"))
    try:
        return float(seconds)
    except (TypeError, ValueError, OverflowError):  # of a record from elsewhere
        return math.inf


def changed_cells(cells: Iterable[StoredCell], inventory: Inventory) -> list[Changed]:
    """Return the finished cells among some of a store that other files have computed."""
    finished = {cell.key: cell for cell in cells if cell.status == "done"}
    return changed_results(finished, inventory.store, lambda key: _rebuilt(finished[key], inventory))


def _rebuilt(stored: StoredCell, inventory: Inventory) -> Cell | None:
    """Return the cell of a record if it has the same key today; None where it may not be computed again.

    That is so of inner folds, whose rows no record has, and of settings that a stranger may have written.
    """
    if stored.kind not in ("train", "scores") or stored.inner_fold is not None or stored.split < 0:
        return None
    with suppress(MultilabError, ImportError, OSError, LookupError, TypeError, ValueError):
        splits = inventory.today(stored)[1]
        if splits is not None and stored.parts["split"] not in splits:  # an inner fold in a record without the field
            return None
        check_runnable(stored)
        cell = inventory.rebuilt(stored)
        return cell if cell.key == stored.key else None
    return None


def _computed_by(item: Item) -> str:
    """Return what decides which code computes an item, as text: cells of one method differ in their rows only."""
    parts = {name: part for name, part in item.identity.items() if name not in ("dataset", "split", "seed", "reads")}
    classes = (
        item.method.identity() if isinstance(item, Cell) else [item.module, item.cell and item.cell.method.identity()]
    )
    return canonical_json([parts, classes])


def _group(item: Item) -> str:
    if not isinstance(item, Cell):
        return f"{item.analysis}{' of ' + item.method if item.method else ''}"
    outer, *inner = dict.fromkeys(name.rpartition(".")[2] for name in class_names(item.method.identity()))
    ref = item.split_ref
    steps: dict[str, Any] = {"base scores": item.kind == "scores", "tuned": item.tune, "columns encoded": ref.encoder}
    steps |= {"rows grouped": ref.groups, "labels hidden": item.observed}
    name = f"{outer}({', '.join(inner)})" if inner else outer
    return ", ".join([name, *(step for step, used in steps.items() if used)])


def standing(found: Iterable[Changed]) -> dict[str, str]:
    """Return, by key of each unchecked result, how many of its class are equal: ``2 of 5 of this class equal``."""
    found = list(found)
    counts, equal = Counter(result.group for result in found), Counter(result.group for result in found if result.equal)
    return {
        result.item.key: f"{equal[result.group]} of {counts[result.group]} of this class equal"
        for result in found
        if not result.equal
    }


# ---------------------------------------------------------------- recomputation


def sample(found: Iterable[Changed]) -> list[Changed]:
    """Return the cheapest result of each class and one drawn by digest, without results already found to be equal."""
    groups: dict[str, list[Changed]] = {}
    for result in sorted(found, key=lambda result: (result.seconds, result.item.key)):
        groups.setdefault(result.group, []).append(result)
    drawn = []
    for group in groups.values():
        # Not random: the same command checks the same result when it is repeated.
        number = int(json_digest(dict(item for result in group for item in result.files.items())), 16)
        others = sorted(group[1:], key=lambda result: result.item.key)
        drawn += [others[number % len(others)]] if others else []
    chosen = [*(group[0] for group in groups.values()), *sorted(drawn, key=lambda result: result.seconds)]
    return [result for result in chosen if not result.equal]


def recompute(chosen: Sequence[Changed], store: Store, run: Run, seconds: float = math.inf) -> dict[str, str]:
    """Recompute stored results in a store of their own, and mark those that are equal.

    Returns
    -------
    dict of str to str
        How each result differs that was recomputed within ``seconds``, by key; empty if it does not.
    """
    inventory = Inventory(store)
    rebuilt = [_rebuilt(inventory.read(c.item.key), inventory) if isinstance(c.item, Cell) else c.item for c in chosen]
    items = [item for item in rebuilt if item is not None and not _ends_by_the_clock(item)]
    with TemporaryDirectory(prefix="multilab-check-") as folder:
        fresh = Store(folder)
        read = {cell.key for item in items for cell in (item.reads if isinstance(item, Cell) else item.needs)}
        for key in read - {item.key for item in items}:
            if store.has(key):
                shutil.copytree(store.path(key), fresh.path(key))
        run(items, fresh, seconds)
        done = [result for result in chosen if fresh.has(result.item.key)]
        differences = {result.item.key: _difference(store, fresh, result.item.key) for result in done}
        _mark([result for result in done if not differences[result.item.key]], fresh)
    return differences


def _ends_by_the_clock(item: Item) -> bool:
    """Return whether a search has as many trials as there was time for, which no recomputation repeats."""
    return isinstance(item, Cell) and bool(item.tune and item.tune.timeout)


def _mark(equal: Iterable[Changed], own: Store) -> None:
    """Mark results that are equal to those of another store, unless other files than today's have computed these."""
    for result in equal:
        used = recorded_code(own.record(result.item.key)).files
        if all(used.get(file, digest) == digest for file, digest in result.files.items()):
            with suppress(OSError):  # a store that may only be read
                result.mark.parent.mkdir(exist_ok=True)
                result.mark.touch()


def _difference(before: Store, after: Store, key: str) -> str:
    """Return how the numbers of a result differ in two stores, empty if they do not."""
    old, new = _numbers(before, key), _numbers(after, key)
    if old.keys() != new.keys() or any(old[name].shape != new[name].shape for name in old):
        return "other arrays"
    for name, values in sorted(old.items(), reverse=True):  # scores before decisions
        if values.dtype.kind not in "fiub" or new[name].dtype.kind not in "fiub":
            if not np.array_equal(values, new[name]):
                return f"other {name}"
        elif not (close := np.isclose(new[name], values, _EQUAL, _EQUAL, equal_nan=True)).all():
            gap = np.abs(np.subtract(new[name][~close], values[~close], dtype=float)).max()
            return f"{name} by up to {gap:.3g}, in {(~close).sum()} of {close.size} entries"
    return ""


def _numbers(store: Store, key: str) -> dict[str, np.ndarray]:
    """Return scores and decisions of a cell, or the columns of an analysis; of a search the values of its trials too.

    A search that is scored wrongly may still choose the same arguments.
    """
    numbers = {name: array for name, array in store.arrays(key).items() if not name.startswith("learned_")}
    if (trials := store.path(key) / "trials.csv").is_file():
        with trials.open(newline="", encoding="utf-8", errors="replace") as file:
            numbers["trials"] = np.array([row[-1:] for row in csv.reader(file)][1:])
        with suppress(ValueError):  # of a file from elsewhere
            numbers["trials"] = numbers["trials"].astype(float)
    return numbers


def refresh(items: Sequence[Item], store: Store, run: Callable[[Store], dict[str, str]]) -> dict[str, str]:
    """Compute results anew, print whether they are equal to the stored ones, and replace those that are not.

    Parameters
    ----------
    items : sequence of Cell or Unit
    store : Store
    run : callable
        Computes them in the store that it gets; returns the reasons of those that failed, by label.

    Returns
    -------
    dict of str to str
        What ``run`` returned.
    """
    by_key = {item.key: item for item in items}
    # results travel from the workers of a cluster, which do not see this folder
    with TemporaryDirectory(prefix="multilab-fresh-") as folder, using(replace(current(), store=None)):
        fresh = Store(folder)
        failed = run(fresh)
        stored = [key for key in fresh.finished() if store.has(key)]
        different = {key: text for key in stored if (text := _difference(store, fresh, key))}
        _mark(changed_results([key for key in stored if key not in different], store, by_key.get), fresh)
        for key in {*fresh.finished()} - ({*stored} - {*different}):
            store.replace(key, {path.name: path.read_bytes() for path in fresh.path(key).iterdir()})
        for key in by_key:
            if failure := fresh.failure(key):
                store.write_failure(key, failure)
    if stored:
        print(f"fresh: {len(stored) - len(different)} of {len(stored)} stored results are equal")
    for key, text in different.items():
        print(f"  different, replaced: {by_key[key].label if key in by_key else key[:12]}: {text}")
    return failed


# ---------------------------------------------------------------- what a command does


@dataclass
class _Command:
    """What a command has met so far."""

    left: float = _SECONDS
    met: set[tuple[Path, str]] = field(default_factory=set)
    stores: set[Path] = field(default_factory=set)
    found: list[Changed] = field(default_factory=list)
    recomputed: int = 0

    def close(self) -> None:
        """Print the line of the command, if there is anything to say."""
        equal = sum(result.equal for result in self.found)
        if self.recomputed or equal < len(self.found):
            print(
                f"note: {len(self.found)} stored results were computed before {_named(self.found)} changed; {equal} "
                f"were recomputed since and are equal, {len(self.found) - equal} are unchecked: `multilab store check`",
                file=sys.stderr,
            )


def _command() -> tuple[_Command, bool]:
    """Return what the running command has met, and whether its line is printed when it ends."""
    context = click.get_current_context(silent=True)
    if context is None:  # called from Python
        return _Command(), False
    root = context.find_root()
    if __name__ not in root.meta:
        root.meta[__name__] = _Command()
        root.call_on_close(root.meta[__name__].close)
    return root.meta[__name__], True


def _named(found: Iterable[Changed]) -> str:
    """Return the first of the files that have changed, and the number of the others."""
    names = {name for result in found for name in result.files}
    first, *others = sorted(names, key=lambda name: (not name.endswith(".py"), name))
    return printable(f"{first} (and {len(others)} more)" if others else first)


def note(found: Iterable[Changed]) -> None:
    """Let the line of a command that computes nothing count these results."""
    _command()[0].found += found


def check_met(items: Iterable[Item], store: Store, run: Run, seconds: float = _SECONDS) -> None:
    """Find the results that a command needs and other files have computed; recompute a few of each class.

    Parameters
    ----------
    items : iterable of Cell or Unit
        Those that are not stored are passed over.
    store : Store
    run : callable
        See :data:`Run`.
    seconds : float
        No recomputation starts that would not end within these; a command has 10 seconds for all of its calls.

    Raises
    ------
    DifferentResultError
        If a result differs: the command would go on with results of two programs.
    """
    began, (command, closes) = time.monotonic(), _command()
    if store.root not in command.stores:
        command.stores.add(store.root)
        note_earlier(store)
    met = {item.key: item for item in items if (store.root, item.key) not in command.met and store.has(item.key)}
    command.met |= {(store.root, key) for key in met}
    changed = changed_results(met, store, met.get)
    command.found += changed
    for result in sample(changed):
        left = min(command.left, seconds) - (time.monotonic() - began)
        if 0 < left >= result.seconds:
            differences = recompute([result], store, run, left)
            command.recomputed += len(differences)
            if text := differences.get(result.item.key):
                # The error says what is wrong, so the note at the end of the command is left out.
                command.found, command.recomputed = [], 0
                raise DifferentResultError(
                    f"{result.group}: {result.item.label} was stored before {_named([result])} changed, and "
                    f"recomputed it differs: {text}. {advice([result])}"
                )
    command.left -= time.monotonic() - began
    if not closes:
        command.close()


def advice(differing: Iterable[Changed]) -> str:
    """Return what to do about results that differ."""
    items = [result.item for result in differing]
    methods = ",".join(dict.fromkeys(i.method.name if isinstance(i, Cell) else i.method for i in items))
    return (
        "If the new numbers are right, raise results_version of the class that changed (`multilab gate` names it), or "
        f"remove the old ones: `multilab store clean --unchecked --method {methods} --yes`"
    )
