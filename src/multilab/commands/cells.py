"""The store of cells on the terminal: lists, differences, removal."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from multilab.commands.arguments import arguments
from multilab.commands.progress import ProgressBar
from multilab.core import MultilabError
from multilab.core.messages import unknown_name
from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store
from multilab.experiments.stored import Inventory, StoredCell, protocol_text
from multilab.metrics import METRICS


def list_cells(store: Store, filters: dict[str, str]) -> int:
    """Print a line per cell that matches."""
    metric, status = filters.get("metric", "hamming_loss"), filters.get("status")
    if metric not in METRICS:
        raise ExperimentError(unknown_name("metric", metric, METRICS))
    if status not in (None, "done", "outdated", "failed", "broken"):
        raise ExperimentError(f"status={status}: a cell is done, outdated, failed or broken")
    inventory, total, count = Inventory(store), 0, 0
    cells = list(inventory.cells(filters.get("dataset", "*"), filters.get("method", "*")))
    cells.sort(key=lambda cell: (cell.dataset, cell.method, protocol_text(cell.protocol), cell.split, cell.kind))
    print(f"{'key':<14}{'status':<10}{'date':<18}{'seconds':>9}{'kB':>9}{metric:>15}  cell")
    progress = ProgressBar("cells") if len(cells) > 200 else None
    for cell in progress(cells, len(cells)) if progress else cells:
        state = "outdated" if cell.status == "done" and inventory.outdated(cell) else cell.status
        if status in (None, state):
            size = folder_size(store.path(cell.key))
            print(_line(cell, state, size, _score(inventory, cell, state, metric), inventory))
            total, count = total + size, count + 1
    print(f"{count} cells, {total / 1e6:.1f} MB, in {store.root}")
    return 0


def _line(cell: StoredCell, state: str, size: int, score: str, inventory: Inventory) -> str:
    started, seconds = cell.record.get("started"), cell.record.get("fit_seconds")
    date = time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started else "?"
    took = "" if seconds is None else f"{seconds:.2f}"
    head = f"{cell.key[:12]:<14}{state:<10}{date:<18}{took:>9}{size / 1e3:>9.1f}{score:>15}"
    return f"{head}  {_what(cell, inventory)}"


def _what(cell: StoredCell, inventory: Inventory) -> str:
    """Return dataset, split, protocol, method and settings of a cell in one text."""
    if not cell.record:
        return "no record"
    inner = cell.record.get("label", "").partition(", inner fold ")[2]
    split = f"split {cell.split}" + (f", inner fold {inner}" if inner else "")
    kind = "base scores of " if cell.kind == "scores" else ""
    rows = [cell.dataset, *([protocol_text(cell.protocol)] if cell.protocol else []), split]
    return " ".join([f"{', '.join(rows)}:", f"{kind}{cell.method}", *inventory.settings(cell)])


def _score(inventory: Inventory, cell: StoredCell, state: str, metric: str) -> str:

    if state != "done" or cell.kind != "train" or cell.inner:
        return ""
    try:
        return f"{inventory.metrics(cell)[metric]:.4f}"
    except (MultilabError, OSError):  # the data are not on this machine, or the store is read-only
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


def why(store: Store, one: str, other: str) -> list[str]:
    """Return what differs between two cells, a line each."""
    inventory = Inventory(store)
    a, b = inventory.read(one), inventory.read(other)
    for cell in (a, b):
        if not cell.record:
            raise ExperimentError(f"{store.path(cell.key)}: no record, so nothing is known of this cell")
    lines = _reasons(inventory, a, b) or ["the same cell"]
    return [f"{_what(a, inventory)}  |  {_what(b, inventory)}", *lines]


def _reasons(inventory: Inventory, a: StoredCell, b: StoredCell, indent: str = "") -> list[str]:
    """Return the differences of two cells as text; of base scores those of the cells that are read."""
    old, new = dict(a.parts), dict(b.parts)
    lines = _rows_reasons(a, b, old, new)
    reads = old.pop("reads", []), new.pop("reads", [])
    if old.get("code") != new.get("code"):
        old.pop("code", None), new.pop("code", None)
        lines.append("code: the code of the method differs")
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
    known = a.protocol is not None and b.protocol is not None
    if known and a.protocol != b.protocol:
        lines.append(f"protocol: {_protocol_text(a)} -> {_protocol_text(b)}")
    if a.split != b.split:
        lines.append(f"split: {a.split} -> {b.split}")
    if split and not lines:
        reason = "other rows" if known else "other rows or another protocol"
        lines.append(f"split: {a.split} has {reason} in the training set" + (" (inner folds)" if a.inner else ""))
    return lines


def _protocol_text(cell: StoredCell) -> str:
    """Return the name of a protocol and its settings."""
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


def clean_cells(store: Store, argv: list[str]) -> int:
    """Print, and with ``--yes`` remove, cells that are failed, broken or half-written."""
    flags = {word for word in argv if word in ("--yes", "--outdated")}
    filters = arguments([word for word in argv if word not in flags], "dataset", "method")
    doomed = list(removable(store, filters, "--outdated" in flags))
    total = 0
    for folder, text in doomed:
        size = folder_size(folder)
        total += size
        print(f"{folder.name[:12]:<14}{size / 1e3:>9.1f} kB  {text}")
        if "--yes" in flags:
            shutil.rmtree(folder)
            for kept in store.root.glob(f".metrics/*/{folder.name}.json"):
                kept.unlink(missing_ok=True)
    swept = store.sweep() if "--yes" in flags and not filters else 0
    waiting = 0 if filters else sum(1 for _ in store.root.glob(".part-*"))
    if "--yes" in flags:
        print(f"removed {len(doomed)} cells, {total / 1e6:.1f} MB" + (f", {swept} half-written" if swept else ""))
    else:
        print(f"{len(doomed)} cells, {total / 1e6:.1f} MB would be removed; --yes removes them")
    if waiting:
        print(f"{waiting} half-written folders: those of dead processes are removed, by --yes or by the next run")
    return 0


def removable(store: Store, filters: dict[str, str], outdated: bool) -> Iterator[tuple[Path, str]]:
    """Yield the folders of cells that are of no use, and why."""
    inventory = Inventory(store)
    for cell in inventory.cells(filters.get("dataset", "*"), filters.get("method", "*")):
        folder = store.path(cell.key)
        if cell.status == "failed":
            reason = "failed"
        elif cell.status == "broken":
            reason = "broken: neither finished nor a record of a failure"
        elif not store.has(cell.key):
            reason = "broken: a file is not what it was when the cell was stored"
        elif outdated and (change := inventory.outdated(cell)):
            reason = f"outdated: {change}"
        else:
            continue
        yield folder, f"{reason}: {_what(cell, inventory)}"
