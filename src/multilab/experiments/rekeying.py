"""New keys for the committed results of a study, after a change of code that does not change their numbers.

Old and new cells are matched by dataset, split and method; their settings and tuning must be equal. A recomputed sample
shows that the numbers are equal, too. Reads only the files of ``reports/<study>``, so the store that the results came
from need not be on this machine. Cells in the local store are copied to their new keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.paper import find
from multilab.core import json_digest, read_json, record_checksums, report_dir
from multilab.core.messages import unknown_name
from multilab.core.text import comma_separated
from multilab.experiments.cells import Cell
from multilab.experiments.errors import ExperimentError
from multilab.experiments.evaluate import MEASURED
from multilab.experiments.plan import all_cells
from multilab.experiments.progress import ProgressBar
from multilab.experiments.store import Store
from multilab.experiments.study import Study, Tuning, load_study
from multilab.statistics.result_files import CELL, read_table, read_unfinished, write_table

__all__ = [
    "Match",
    "changed_settings",
    "copy_cells",
    "match_cells",
    "sample_cells",
    "stored_differences",
    "write_new_keys",
]


@dataclass(frozen=True)
class Match:
    """A cell of a study as defined by the current code, and the key of its committed result."""

    cell: Cell
    key: str

    @property
    def moved(self) -> bool:
        """Whether the key has changed."""
        return self.key != self.cell.key


def match_cells(study: Study, folder: Path) -> list[Match]:
    """Return all cells of a study with their committed keys.

    Raises
    ------
    ExperimentError
        If ``keys.csv`` and ``unfinished.csv`` together have other datasets, splits or methods than the study.
    """
    table = pd.concat([read_table(folder / "keys.csv", [*CELL, "key"]), read_unfinished(folder)])
    keys = {(row.dataset, row.split, row.method): str(row.key) for row in table.itertuples()}
    cells = {cell.row: cell for cell in all_cells(study)}
    for names, what in ((keys.keys() - cells, "not in the study"), (cells.keys() - keys, "not in keys.csv")):
        if names:
            first = ", ".join(map(str, min(names)))
            raise ExperimentError(f"{folder}: {len(names)} cells are {what}, the first: {first}; run the study")
    return [Match(cell, keys[location]) for location, cell in cells.items()]


def changed_settings(study: Study, folder: Path, matches: Iterable[Match]) -> dict[str, list[str]]:
    """Return, by method, the settings that differ from the committed ``study.json``, one line per setting.

    Classes are compared by their names: a class that moved is the same.
    """
    info = read_json(folder / "study.json")
    digests = {card["name"]: card["digest"] for card in read_json(folder / "datasets.json")}
    changes: dict[str, dict[str, list[str]]] = {}
    cells = {(match.cell.method.name, match.cell.split_ref.dataset): match.cell for match in matches}
    for (method, dataset), cell in cells.items():
        before = _committed(info, method, dataset) | {"data": digests.get(dataset)}
        after = _today(study, cell) | {"data": cell.split_ref.dataset_digest}
        for name in sorted(before.keys() | after.keys()):
            old, new = (_by_class_name(values.get(name)) for values in (before, after))
            if json_digest(old) != json_digest(new):
                changes.setdefault(method, {}).setdefault(f"{name} was {old}, is {new}", []).append(dataset)
    return {
        method: [f"{method} on {', '.join(datasets)}: {text}" for text, datasets in texts.items()]
        for method, texts in changes.items()
    }


def _today(study: Study, cell: Cell) -> dict[str, Any]:
    """Return what decides the result of a cell, apart from code and data."""
    method, tune = cell.method, study.tune_of(cell.method.name)
    settings = {**method.identity(), "preprocessing": method.preprocessing}
    if method.base_scores:
        settings |= {"base_scores": list(method.base_scores), "inner_cv": method.inner_cv}
    return settings | {
        "study": [study.seed, study.measure, study.protocol_of(cell.split_ref.dataset)],
        "tune": tune and tune.identity(),
        "repetitions": list(study.repetitions_of(method.name)),
        "observed": cell.observed and cell.observed.to_dict(),
    }


def _committed(info: Mapping[str, Any], column: str, dataset: str) -> dict[str, Any]:
    """Return the same of the committed ``study.json``."""
    variant = next((v for v in (info.get("variants") or {}).values() if column in v["methods"]), None)
    base = column.removesuffix(f"-{variant['name']}") if variant else column
    block = variant or info
    settings = dict(info["settings"][column])
    for override in (*info.get("overrides", ()), *(variant["settings"] if variant else ())):
        if base in (override.get("methods") or [base]) and dataset in (override.get("datasets") or [dataset]):
            settings |= override["set"]
    tune, repetitions = block.get("tune"), block.get("repetitions") or {"n_repeats": 1, "methods": []}
    protocol = (info.get("protocols") or {}).get(dataset, info["protocol"])
    return settings | {
        "study": [info["seed"], info["measure"], protocol],
        "tune": Tuning.from_mapping(tune).identity() if tune else None,
        "repetitions": [repetitions["n_repeats"], base in repetitions["methods"]],
        "observed": block.get("observed"),
    }


def _by_class_name(value: Any) -> Any:
    """Return a setting with the names of classes instead of their paths."""
    if isinstance(value, Mapping):
        return {name: _by_class_name(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_by_class_name(item) for item in value]
    return value.rpartition(".")[2] if isinstance(value, str) and value.startswith("multilab.") else value


def sample_cells(
    matches: Sequence[Match], folder: Path, seed: int, store: Store | None = None, per_method: int = 2
) -> list[Cell]:
    """Return some finished cells per method, of its cheapest dataset first, drawn by the seed within a dataset.

    Of a method with results in ``store``, which would be copied, one of these is among them.
    """
    costs, unfinished = _seconds(folder), set(read_unfinished(folder)["key"])
    rng = np.random.default_rng(seed)
    chosen: dict[str, Cell] = {}
    for method in dict.fromkeys(match.cell.method.name for match in matches):
        own = [m for m in matches if m.cell.method.name == method and m.key not in unfinished]
        unique = list({m.cell.key: m for m in own}.values())
        drawn = [unique[index] for index in rng.permutation(len(unique))]
        drawn.sort(key=lambda m: costs.get((m.cell.split_ref.dataset, method), 0.0))
        stored = [m for m in drawn if store and store.has(m.key)]
        chosen |= {m.cell.key: m.cell for m in [*drawn[:per_method], *stored[:1]]}
    return list(chosen.values())


def stored_differences(matches: Iterable[Match], store: Store, fresh: Store, tolerance: float) -> list[str]:
    """Return a line for each recomputed cell whose scores differ from those stored under its old key.

    Metrics may be equal where scores are not, and other cells may read them.
    """
    lines = []
    for match in matches:
        if fresh.has(match.cell.key) and store.has(match.key):
            now, before = (each.arrays(key)["scores"] for each, key in ((fresh, match.cell.key), (store, match.key)))
            difference = float(np.abs(now - before).max(initial=0.0))
            if not difference <= tolerance:
                lines.append(f"{match.cell.label}: scores differ from the stored ones by up to {difference:.3g}")
    return lines


def _seconds(folder: Path) -> dict[tuple[str, str], float]:
    """Return the mean seconds of a method's cells on a dataset, its search included."""
    table = read_table(folder / "measured.csv", CELL)
    table["seconds"] = table[[name for name in MEASURED if name.endswith("_seconds")]].sum(axis=1)
    tables = [table]
    if (folder / "tuned.csv").is_file():
        tuned = read_table(folder / "tuned.csv", [*CELL, "tune_seconds"]).drop_duplicates(CELL)
        tables.append(tuned.rename(columns={"tune_seconds": "seconds"}))
    means = [t.groupby(["dataset", "method"])["seconds"].mean() for t in tables]
    return pd.concat(means).groupby(level=[0, 1]).sum().to_dict()


def write_new_keys(folder: Path, matches: Iterable[Match]) -> None:
    """Write new keys to the ``keys.csv`` of a study and, where there is one, to its ``unfinished.csv``.

    Cells that are not among the matches keep their keys.
    """
    keys = {match.cell.row: match.cell.key for match in matches}
    tables = {"keys.csv": read_table(folder / "keys.csv", [*CELL, "key"]), "unfinished.csv": read_unfinished(folder)}
    for name, table in tables.items():
        if len(table):
            rows = table[[*CELL, "key"]].itertuples(index=False, name=None)
            table["key"] = [keys.get(tuple(location), key) for *location, key in rows]
            write_table(folder / name, table)
    record_checksums(folder, list(tables))


def copy_cells(matches: Iterable[Match], store: Store, without: Collection[str] = ()) -> int:
    """Copy the results in a store, inputs included, to their new keys; return their number.

    Results of the methods ``without`` are left out: their settings changed, and a record says how a result was made.
    """
    copied = 0
    pairs = [(match.key, match.cell) for match in matches if match.cell.method.name not in without]
    while pairs:
        old, cell = pairs.pop()
        if old == cell.key or not store.has(old) or store.has(cell.key):
            continue
        record = store.record(old)
        pairs += zip(record["parts"]["reads"], cell.reads, strict=True)
        store.copy(old, cell.key, record | {"parts": cell.identity, "settings": cell.method.identity()})
        copied += 1
    return copied


def rekey(
    store: Store,
    study: str,
    accept: str = "",
    seed: int = 0,
    reason: str = "",
    sample: int = 2,
    recompute: str = "",
) -> int:
    """Give the committed results of a study their new keys; return 1 without changes if this is not allowed.

    Parameters
    ----------
    store : Store
        Cells that are in it are copied to their new keys.
    study : str
        Name of the study.
    accept : str
        Methods whose settings may differ, comma-separated: the same arguments written in another way.
    seed : int
        Seed of the recomputed sample.
    reason : str
        Reason why recomputed numbers may differ from the committed ones by up to 1e-6.
    sample : int
        Number of cells per method that are recomputed.
    recompute : str
        Methods whose numbers changed, comma-separated: they keep their keys, so that `multilab store add` fits them.
    """
    described, folder = load_study(study), report_dir(study)
    matches = match_cells(described, folder)
    changed = set(comma_separated(recompute))
    if unknown := changed - {match.cell.method.name for match in matches}:
        raise ExperimentError(unknown_name("method", min(unknown), described.all_methods))
    matches = [match for match in matches if match.cell.method.name not in changed]
    moved = [match for match in matches if match.moved]
    print(f"{study}: {len(moved)} of {len(matches)} results have another key now")
    if not moved:
        return 0
    accepted = set(comma_separated(accept))
    changes = changed_settings(described, folder, moved)
    for method, lines in changes.items():
        print(*(f"{'accepted' if method in accepted else 'REFUSED'}: {line}" for line in lines), sep="\n")
    cells = sample_cells(moved, folder, seed, store, sample)
    wrong = _recomputed(described, folder, moved, store, cells, reason)
    if wrong or set(changes) - accepted:
        print(*wrong, f"rekey REFUSED: {study} keeps its keys", sep="\n")
        return 1
    copied = copy_cells(moved, store, changes)
    write_new_keys(folder, matches)
    print(f"rekey passed: {folder / 'keys.csv'} is written; {copied} cells copied in {store.root}")
    if changed:
        print(f"{recompute}: multilab store add --study {study} fits them again")
    return 0


def _recomputed(
    study: Study, folder: Path, moved: list[Match], store: Store, cells: list[Cell], reason: str
) -> list[str]:
    """Recompute cells, compare them with committed and stored results; return a line for each that may not differ."""
    from multilab.experiments import verify
    from multilab.experiments.evaluate import extra_quantities
    from multilab.experiments.execute import run_cells

    expected = verify.committed_numbers(folder)
    reads = {read.key: read for cell in cells for read in cell.reads}
    with tempfile.TemporaryDirectory(prefix="multilab-rekey-") as temporary:
        fresh = Store(temporary)
        progress = ProgressBar(f"rekey: {len(cells)} cells of {study.name}")
        failed = run_cells([*reads.values(), *cells], fresh, progress=progress)
        done = [cell for cell in cells if fresh.has(cell.key)]
        extra = extra_quantities(study, find(study.paper).tables if study.paper else None)
        numbers = verify.fingerprints(done, fresh, study.conventions, extra)
        changed = stored_differences(moved, store, fresh, verify.SAME_VERSIONS)
    exact = verify.differences(numbers, expected, 0.0)
    largest = max(exact, key=lambda d: abs(d.computed - d.expected) / max(1.0, abs(d.expected)), default=None)
    compared = sum(len(expected[name]) for name in numbers)
    print(f"recomputed {len(done)} cells of {len({c.method.name for c in done})} methods: {compared} numbers,", end=" ")
    print(f"{len(exact)} differ, most of all {largest}" if largest else "all equal bit for bit")
    wrong = [*(f"{label} failed: {text}" for label, text in failed.items()), *changed]
    wrong += [str(difference) for difference in verify.differences(numbers, expected, verify.SAME_VERSIONS)]
    if exact and not wrong and not reason:
        return [f"equal only within {verify.SAME_VERSIONS:g}, not bit for bit: give a --reason"]
    if exact and not wrong:
        print(f"accepted within {verify.SAME_VERSIONS:g}: {reason}")
    return wrong
