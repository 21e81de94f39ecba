"""The commands about the store of results: look into it, clean it, and add to committed results."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilab.cells.errors import ExperimentError
from multilab.cli.files import named_dataset
from multilab.cli.options import CELL, DATASET, METHOD, METRIC, STUDY, engine_options
from multilab.core import MultilabError
from multilab.core.text import excerpt, visible

if TYPE_CHECKING:
    from multilab.cells.inventory import Inventory, StoredCell
    from multilab.cells.store import Store

_AT_ONCE = 50  # cells recomputed in one temporary store
_SHOWN = 10  # changed files in the table of a key

_dataset = click.option("--dataset", type=DATASET, metavar="NAME,...", help="Datasets; patterns such as 'yahoo-*' too.")
_method = click.option("--method", type=METHOD, metavar="NAME,...", help="Methods; patterns such as 'mlwse_*' too.")
_study = click.option("--study", type=STUDY, required=True, help="The study.")


@click.group()
def store() -> None:
    """Inspect and clean stored results.

    A KEY may be shortened.
    """


@store.command("list")
@_dataset
@_method
@click.option(
    "--status",
    type=click.Choice(["done", "unchecked", "outdated", "failed", "broken"]),
    help="Only cells of this status.",
)
@click.option("--metric", type=METRIC, default="hamming_loss", show_default=True, help="The metric to show.")
def list_cells(dataset: str | None, method: str | None, status: str | None, metric: str) -> None:
    """List the cells, one per line.

    A line shows key, status, date, seconds, size, the metric, dataset, split, protocol, method and settings. A cell is
    outdated if the current code, libraries or data would give it another key. A cell is unchecked if files of multilab
    have changed since and it was not recomputed; `multilab store check` recomputes it.
    """
    from multilab.cells.checks import changed_cells, note, standing
    from multilab.cells.inventory import Inventory, note_earlier, protocol_text
    from multilab.cells.progress import ProgressBar
    from multilab.cells.store import Store
    from multilab.metrics.registry import METRICS, unknown_standard

    if metric not in METRICS:
        raise ExperimentError(unknown_standard(metric))
    results = Store()
    inventory, total, count = Inventory(results), 0, 0
    cells = list(inventory.cells(named_dataset(dataset or "*", {}), method or "*"))
    cells.sort(key=lambda cell: (cell.dataset, cell.method, protocol_text(cell.protocol), cell.split, cell.kind))
    note_earlier(results)
    note(changed := changed_cells(cells, inventory))
    unchecked = standing(changed)
    print(f"{'key':<14}{'status':<11}{'date':<18}{'seconds':>9}{'kB':>9}{metric:>15}  cell")
    progress = ProgressBar("cells") if len(cells) > 200 else None
    for cell in progress(cells, len(cells)) if progress else cells:
        state = "outdated" if cell.status == "done" and inventory.outdated(cell) else cell.status
        state = "unchecked" if state == "done" and cell.key in unchecked else state
        if status in (None, state):
            size = folder_size(results.path(cell.key))
            line = _line(cell, state, size, _score(inventory, cell, state, metric), inventory)
            print(f"{line} ({unchecked[cell.key]})" if state == "unchecked" else line)
            total, count = total + size, count + 1
    print(f"{count} cells, {total / 1e6:.1f} MB, in {results.root}")


@store.command()
@click.argument("key", type=CELL)
def show(key: str) -> None:
    """Show the record of a cell."""
    from multilab.cells.store import Store

    results = Store()
    print(json.dumps(results.record(results.find(key)), indent=1, sort_keys=True))


@store.command()
@click.argument("key", type=CELL)
@click.argument("other", type=CELL, required=False)
def why(key: str, other: str | None) -> None:
    """Show what a key holds and what changed, or how two cells differ."""
    from multilab.cells.store import Store

    results = Store()
    if other is not None:
        print("\n".join(differences(results, results.find(key), results.find(other))))
        return
    rows = explanation(results, results.find(key))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for part, then, now in rows:
        print(f"{part:<{widths[0]}}  {then:<{widths[1]}}  {now}".rstrip())


@store.command()
@_dataset
@_method
@click.option("--all", "every", is_flag=True, help="Recompute all of them.")
def check(dataset: str | None, method: str | None, every: bool) -> int:
    """Recompute results whose files have changed since, and compare.

    Without --all, the command recomputes the cheapest result of each class and one other. Equal results are no longer
    unchecked. The exit code is 1 if a result differs or cannot be recomputed. `multilab study run` checks analyses.
    """
    from multilab.cells.checks import advice, changed_cells, recompute, sample
    from multilab.cells.execute import compute_within
    from multilab.cells.inventory import Inventory
    from multilab.cells.progress import ProgressBar
    from multilab.cells.store import Store

    results = Store()
    inventory = Inventory(results)
    changed = changed_cells(inventory.cells(named_dataset(dataset or "*", {}), method or "*"), inventory)
    chosen = [change for change in changed if not change.equal] if every else sample(changed)
    differences: dict[str, str] = {}
    for start in ProgressBar("check")(range(0, len(chosen), _AT_ONCE), math.ceil(len(chosen) / _AT_ONCE)):
        differences |= recompute(chosen[start : start + _AT_ONCE], results, compute_within)
    for change in chosen:
        if text := differences.get(change.item.key, "it cannot be recomputed"):
            print(f"{change.group}: {change.item.label}: {text}")
    if differing := [change for change in chosen if differences.get(change.item.key)]:
        print(advice(differing))
    equal = sum(not text for text in differences.values())
    unchecked = sum(not change.equal for change in changed)
    print(f"{len(changed)} results of changed files: {equal} recomputed and equal, {unchecked} unchecked")
    return int(equal < len(chosen))


@store.command()
@_study
@click.option("--retry-unfinished", is_flag=True, help="Also retry cells that exceeded a limit or failed.")
@engine_options
def add(study: str, retry_unfinished: bool) -> int:
    """Fit cells that the committed results lack.

    The new results are added to those of the study. Use this after you add columns or datasets to a study.
    """
    from multilab.cells.store import Store
    from multilab.experiments.add_columns import add as add_results

    return add_results(Store(), study, retry_unfinished)


@store.command()
@_dataset
@_method
@click.option("--outdated", is_flag=True, help="Also cells that are out of date.")
@click.option("--unchecked", is_flag=True, help="Also cells whose files have changed, except recomputed ones.")
@click.option("--yes", is_flag=True, help="Remove them.")
def clean(dataset: str | None, method: str | None, outdated: bool, unchecked: bool, yes: bool) -> None:
    """Remove failed, broken and half-written cells.

    Without --yes, the command only lists them. With --outdated and no --dataset or --method, it also removes encoded
    tables and metrics that other code left in the store.
    """
    from multilab.cells.store import Store

    results = Store()
    doomed = list(removable(results, named_dataset(dataset or "*", {}), method or "*", outdated, unchecked))
    caches = list(outdated_caches(results)) if outdated and not (dataset or method) else []
    total = 0
    for path, text in [*doomed, *caches]:
        size = folder_size(path) if path.is_dir() else path.stat().st_size
        total += size
        print(f"{path.name[:12]:<14}{size / 1e3:>9.1f} kB  {text}")
        if not yes:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        # what was derived from the cell goes with it
        for pattern in (f".metrics/*/{path.name}.json", f".checked/{path.name}.*"):
            for cached in results.root.glob(pattern):
                cached.unlink(missing_ok=True)
    swept = results.sweep() if yes and not (dataset or method) else 0
    waiting = 0 if dataset or method else sum(1 for _ in results.root.glob(".part-*"))
    what = f"{len(doomed)} cells" + (f" and {len(caches)} outdated caches" if caches else "")
    if yes:
        print(f"removed {what}, {total / 1e6:.1f} MB" + (f", {swept} half-written" if swept else ""))
    else:
        print(f"{what}, {total / 1e6:.1f} MB would be removed; --yes removes them")
    if waiting:
        print(f"{waiting} half-written folders: those of dead processes are removed, by --yes or by the next run")


def _line(cell: StoredCell, state: str, size: int, score: str, inventory: Inventory) -> str:
    started, seconds = cell.record.get("started"), cell.record.get("fit_seconds")
    date = time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started else "?"
    took = "" if seconds is None else f"{seconds:.2f}"
    head = f"{cell.key[:12]:<14}{state:<11}{date:<18}{took:>9}{size / 1e3:>9.1f}{score:>15}"
    return f"{head}  {_what(cell, inventory)}"


def _what(cell: StoredCell, inventory: Inventory) -> str:
    """Return dataset, split, protocol, method and settings of a cell in one text."""
    from multilab.cells.inventory import protocol_text

    if not cell.record:
        return "no record of multilab"
    try:
        settings = inventory.settings(cell)
    except (MultilabError, LookupError, TypeError, ValueError) as error:  # of a record from elsewhere
        settings = [f"settings that cannot be read ({type(error).__name__})"]
    split = f"split {cell.split}" + ("" if cell.inner_fold is None else f", inner fold {cell.inner_fold}")
    kind = "base scores of " if cell.kind == "scores" else ""
    rows = [cell.dataset, *([protocol_text(cell.protocol)] if cell.protocol else []), split]
    return " ".join([f"{', '.join(rows)}:", f"{kind}{cell.method}", *settings])


def _score(inventory: Inventory, cell: StoredCell, state: str, metric: str) -> str:
    if state not in ("done", "unchecked") or cell.kind != "train" or cell.inner_fold is not None:
        return ""
    try:
        return f"{inventory.metrics(cell)[metric]:.4f}"
    except (MultilabError, OSError):  # the data are not here, the store is read-only, or the scores are not its own
        return "?"


def folder_size(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


def record_differences(a: Any, b: Any, at: str = "") -> list[str]:
    """Return what differs between two records' parts, a line each."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = sorted(set(a) | set(b))
        return [line for k in keys for line in record_differences(a.get(k), b.get(k), f"{at}.{k}" if at else str(k))]
    return [] if a == b else [f"{at}: {json.dumps(a)} -> {json.dumps(b)}"]


def differences(store: Store, one: str, other: str) -> list[str]:
    """Return what differs between two cells, a line each."""
    from multilab.cells.inventory import Inventory

    inventory = Inventory(store)
    a, b = inventory.read(one), inventory.read(other)
    for cell in (a, b):
        if not cell.record:
            raise ExperimentError(f"{store.path(cell.key)}: no record, so nothing is known of this cell")
    lines = _reasons(inventory, a, b) or ["the same cell"]
    return [f"{_what(a, inventory)}  |  {_what(b, inventory)}", *lines]


def explanation(store: Store, key: str) -> list[tuple[str, str, str]]:
    """Return the parts of a key, each with its value and, if it has changed, today's value."""
    from multilab.cells.environment import installed_version, package_commit
    from multilab.cells.inventory import Inventory, setting_text
    from multilab.cells.loaded_code import files_today
    from multilab.cells.records import recorded_code

    inventory = Inventory(store)
    cell = inventory.read(key)
    if not cell.record:
        raise ExperimentError(f"{store.path(key)}: no record, so nothing is known of this cell")
    parts, code, outdated = dict(cell.parts), recorded_code(cell.record), inventory.outdated(cell)
    data, splits = inventory.today(cell)
    other_data = data not in (None, parts.get("dataset"))
    other_rows = splits is not None and parts.get("split") not in splits
    rows = [("part", "stored", "today"), ("cell", _what(cell, inventory), outdated or "")]
    rows.append(("data", f"{cell.dataset} {str(parts.pop('dataset', '?'))[:12]}", str(data)[:12] if other_data else ""))
    rows.append(("rows", f"{_protocol_text(cell)}, split {cell.split}", "other rows" if other_rows else ""))
    rows += [("reads", _what(inventory.read(read), inventory), "") for read in parts.pop("reads", [])[::2]]
    parts.pop("split", None)
    identity = parts if outdated is None else _identity(inventory, cell) or parts
    for name in sorted({*parts, *identity} - {"dataset", "split", "reads"}):
        then, now = (setting_text(key_parts[name]) if name in key_parts else "-" for key_parts in (parts, identity))
        rows.append((name.replace("_", " "), then, "" if then == now else now))
    versions = {name: installed_version(name) or "-" for name in code.versions}
    today = {**files_today(), **versions, "commit": package_commit() or "-"}
    for name, then in {"commit": code.commit or "-", **code.versions}.items():
        rows.append((name, then, "" if today[name] == then else str(today[name])))
    changed = [(f"  {file}", then, today.get(file) or "gone") for file, then in sorted(code.files.items())]
    changed = [row for row in changed if row[1] != row[2]]
    rows.append(
        ("files", f"{len(code.files)} of multilab, {len(code.own_files)} of your own", f"{len(changed)} changed")
    )
    if len(changed) > _SHOWN:
        changed[_SHOWN:] = [("", f"and {len(changed) - _SHOWN} others", "")]
    return [
        (visible(part), excerpt(visible(then), 100), excerpt(visible(now), 100)) for part, then, now in rows + changed
    ]


def _identity(inventory: Inventory, cell: StoredCell) -> dict[str, Any] | None:
    """Return what the key of a cell would be computed from today, None if that cannot be determined."""
    try:
        return inventory.rebuilt(cell).identity
    except (MultilabError, ImportError, OSError, LookupError, TypeError, ValueError):
        return None


def _reasons(inventory: Inventory, a: StoredCell, b: StoredCell, indent: str = "") -> list[str]:
    """Return the differences of two cells as text; for base scores, the differences of the cells that are read."""
    old, new = ({**cell.parts, "method": cell.settings} for cell in (a, b))  # the key leaves defaults out
    lines = _rows_reasons(a, b, old, new)
    reads = old.pop("reads", []), new.pop("reads", [])
    if ("tune" in old) != ("tune" in new):
        lines.append(f"tuning: {_tuning(old.pop('tune', None))} -> {_tuning(new.pop('tune', None))}")
    lines += record_differences(old, new)
    if reads[0] != reads[1]:
        lines += _reads_reasons(inventory, *reads)
    return [indent + line for line in lines]


def _tuning(block: dict[str, Any] | None) -> str:
    """Return how a cell is tuned, as text."""
    settings = {name: value for name, value in (block or {}).items() if name != "search"}
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items())) or "none"


def _rows_reasons(a: StoredCell, b: StoredCell, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return how dataset, protocol and split differ; take their digests out of ``old`` and ``new``."""
    lines = []
    data, split = (old.pop(name, None) != new.pop(name, None) for name in ("dataset", "split"))
    if a.dataset != b.dataset:
        lines.append(f"dataset: {a.dataset} -> {b.dataset}")
    elif data:
        lines.append(f"dataset: {a.dataset} has other data")
    protocols_known = a.protocol is not None and b.protocol is not None
    if protocols_known and a.protocol != b.protocol:
        lines.append(f"protocol: {_protocol_text(a)} -> {_protocol_text(b)}")
    if a.split != b.split:
        lines.append(f"split: {a.split} -> {b.split}")
    if split and not lines:
        reason = "other rows" if protocols_known else "other rows or another protocol"
        lines.append(
            f"split: {a.split} has {reason} in the training set" + ("" if a.inner_fold is None else " (inner folds)")
        )
    return lines


def _protocol_text(cell: StoredCell) -> str:
    """Return the name of a protocol and its settings."""
    from multilab.cells.inventory import protocol_text

    settings = ", ".join(f"{name} {json.dumps(value)}" for name, value in (cell.protocol or {}).items())
    return f"{protocol_text(cell.protocol)} ({settings})"


def _reads_reasons(inventory: Inventory, old: list[str], new: list[str]) -> list[str]:
    members = [[inventory.read(key) for key in keys[::2]] for keys in (old, new)]
    names = [[cell.method for cell in cells] for cells in members]
    if names[0] != names[1]:
        return [f"base scores: {', '.join(names[0])} -> {', '.join(names[1])}"]
    lines = []
    for a, b in zip(*members, strict=True):
        if a.key != b.key:
            lines.append(f"base scores of {a.method} differ:")
            lines += _reasons(inventory, a, b, "  ") if a.record and b.record else ["  no record is left of them"]
    return lines or ["base scores: the test scores differ"]


def removable(store: Store, dataset: str, method: str, outdated: bool, unchecked: bool) -> Iterator[tuple[Path, str]]:
    """Yield the folders of cells that are of no use, and why."""
    from multilab.cells.inventory import Inventory

    inventory = Inventory(store)
    cells = list(inventory.cells(dataset, method))
    stale = _stale(inventory, {cell.key for cell in cells}) if unchecked else set()
    cells += [cell for cell in inventory.cells() if cell.key in stale - {cell.key for cell in cells}]
    for cell in cells:
        folder = store.path(cell.key)
        if cell.status == "failed":
            reason = "failed"
        elif cell.status == "broken":
            reason = "broken: neither finished nor a record of a failure"
        elif not store.has(cell.key):
            reason = "broken: a file has changed since the cell was stored"
        elif outdated and (change := inventory.outdated(cell)):
            reason = f"outdated: {change}"
        elif cell.key in stale:
            reason = "unchecked: the files that computed it, or a cell that it reads, have changed"
        else:
            continue
        yield folder, f"{reason}: {_what(cell, inventory)}"


def _stale(inventory: Inventory, wanted: Collection[str]) -> set[str]:
    """Return the unchecked cells among those wanted, and the cells that read one of them, whatever their method."""
    from multilab.cells.checks import changed_cells

    cells = list(inventory.cells())
    stale = {change.item.key for change in changed_cells(cells, inventory) if not change.equal} & set(wanted)
    while more := {cell.key for cell in cells if stale & {*cell.parts.get("reads", ())}} - stale:
        stale |= more
    return stale


def outdated_caches(store: Store) -> Iterator[tuple[Path, str]]:
    """Yield the encoded tables and the metrics that other code left in a store, and what they are."""
    from multilab.cells.cell_metrics import outdated_metrics
    from multilab.cells.rows import outdated_tables

    for path in outdated_tables(store):
        yield path, "outdated: encoded tables"
    for path in outdated_metrics(store):
        yield path, "outdated: kept metrics"
