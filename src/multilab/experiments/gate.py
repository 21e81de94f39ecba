"""The reproducibility gate: recompute cells, compare them with committed numbers, and name what differs.

Four questions: is every expected cell computed; does every method beat the constant predictor; are the numbers those
committed; and, for a committed study, are randomly chosen cells of its scores what this code computes today.
The gate recomputes in a store of its own; it restores nothing.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multilab.cells.cell import Cell, library_versions
from multilab.cells.cell_metrics import evaluate_cell
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.method import without_gate_case
from multilab.cells.progress import ProgressBar, count_warnings
from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.core import conf_dir, read_json, report_dir, write_atomically
from multilab.datasets import load
from multilab.experiments.evaluate import extra_quantities
from multilab.experiments.plan import base_score_cells, gate_case_cells, study_cells
from multilab.experiments.study import Study
from multilab.printed import find
from multilab.statistics.result_files import read_scores, read_unfinished

__all__ = [
    "REFERENCES",
    "SAME_VERSIONS",
    "Difference",
    "beats_constant",
    "cell_name",
    "committed_numbers",
    "differences",
    "fingerprint",
    "fingerprints",
    "kept_where_same",
    "load_reference",
    "missing_cells",
    "reference",
    "tolerance",
    "trial_values",
    "verdict",
]

Numbers = dict[str, dict[str, float]]

SAME_VERSIONS = 1e-6
"""Same library versions, any machine or BLAS: absolute for metrics, relative for norms of arrays."""
OTHER_VERSIONS = 5e-3
"""Other versions of the libraries."""

REFERENCES = "tests/references"
"""Folder of the reference numbers in a checkout; an installed package has none."""


@dataclass(frozen=True)
class Difference:
    """One number that differs from the committed one."""

    cell: str
    quantity: str
    expected: float
    computed: float

    def __str__(self) -> str:
        return f"{self.cell}: {self.quantity} is {self.computed:.10g}, the reference says {self.expected:.10g}"


def fingerprint(
    cell: Cell, store: Store, conventions: str = "default", extra: Iterable[tuple[str, str]] = ()
) -> dict[str, float]:
    """Return all metrics of a cell and the norms of its arrays, so no change hides behind a rank.

    Norms are of finite entries: the loss of a layer that was not grown is NaN, that of a measure not defined infinite.
    A tuned cell also has the value of every trial: a search that is scored wrongly may still choose the same arguments.
    """
    numbers = dict(evaluate_cell(cell, store, conventions, extra))
    for name, array in store.arrays(cell.key).items():
        if name == "scores" or (name.startswith("learned_") and array.ndim == 2):
            numbers[f"norm of {name}"] = float(np.linalg.norm(array[np.isfinite(array)]))
    return numbers | trial_values(cell, store)


def trial_values(cell: Cell, store: Store) -> dict[str, float]:
    """Return the value of each trial of a tuned cell; empty for a cell that is not tuned."""
    if not cell.tune:
        return {}
    with (store.path(cell.key) / "trials.csv").open(newline="") as file:
        return {f"value of trial {trial}": float(value) for trial, *_, value in list(csv.reader(file))[1:]}


def cell_name(cell: Cell) -> str:
    """Return the name of a cell in the reference: ``digit-segments/2/mlknn``."""
    return "/".join(map(str, cell.row))


def column_of(name: str) -> str:
    """Return the method, with the settings of a gate case, from the name of a cell (:func:`cell_name`)."""
    return name.split("/", 2)[2]


def fingerprints(
    cells: Iterable[Cell],
    store: Store,
    conventions: str = "default",
    extra: Callable[[str], Iterable[tuple[str, str]]] = lambda method: (),
) -> Numbers:
    """Return the numbers of finished cells, by name; for ``extra`` see `evaluate.extra_quantities`."""
    return {cell_name(c): fingerprint(c, store, conventions, extra(c.method.name)) for c in cells}


def committed_numbers(folder: Path) -> Numbers:
    """Return the numbers of the committed scores of a study, by name of the cell."""
    if not (folder / "scores.csv.gz").is_file():
        raise ExperimentError(f"{folder} has no committed results; a clone of multilab has those of its studies")
    scores = read_scores(folder)
    cells = scores["dataset"] + "/" + scores["split"].astype(str) + "/" + scores["method"]
    return {str(name): dict(zip(rows["metric"], rows["value"], strict=True)) for name, rows in scores.groupby(cells)}


def missing_cells(
    computed: Iterable[str], requested: Iterable[str], expected: Iterable[str], methods: Iterable[str] | None = None
) -> list[str]:
    """Return a line for each cell that should have been computed and was not.

    Parameters
    ----------
    computed, requested, expected : iterable of str
        Names (:func:`cell_name`) of the computed cells, of those of the study, and of those with committed
        numbers.
    methods : iterable of str, optional
        Of the committed cells only those of these methods count, their gate cases (``method[alpha=3]``) included.
    """
    chosen = None if methods is None else set(methods)
    names = {name for name in expected if chosen is None or without_gate_case(column_of(name)) in chosen}
    return [f"{name}: not computed" for name in sorted((names | set(requested)) - set(computed))]


def beats_constant(cells: Sequence[Cell], store: Store) -> tuple[bool, float, float]:
    """Return whether a method beats the constant predictor in ranking loss by 3 standard errors.

    The constant predictor scores every row with the label frequencies of the training set. Compared row by row over
    all test rows of the cells; ties between a relevant and an irrelevant label are errors.

    Returns
    -------
    passed : bool
    gain : float
        Mean reduction of the ranking loss.
    error : float
        Its standard error.
    """
    gains = []
    for cell in cells:
        Y = load(cell.split_ref.dataset).Y
        train, test = indices(cell.split_ref)
        constant = np.broadcast_to(Y[train].mean(axis=0), Y[test].shape)
        mixed = (Y[test].any(axis=1)) & (~Y[test].all(axis=1))
        lost = _row_ranking_loss(Y[test][mixed], store.arrays(cell.key)["scores"][mixed])
        gains.append(_row_ranking_loss(Y[test][mixed], constant[mixed]) - lost)
    gain = np.concatenate(gains)
    error = float(gain.std(ddof=1) / math.sqrt(len(gain)))
    return bool(gain.mean() > 3 * error), float(gain.mean()), error


def _row_ranking_loss(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    pairs = Y[:, :, None] > Y[:, None, :]
    wrong = pairs & (scores[:, :, None] <= scores[:, None, :])
    return wrong.sum(axis=(1, 2)) / pairs.sum(axis=(1, 2))


def reference(numbers: Numbers) -> str:
    """Return the text of a reference file."""
    return json.dumps({"versions": library_versions(), "cells": numbers}, indent=1, sort_keys=True) + "\n"


def load_reference(study: str) -> dict[str, Any] | None:
    """Return the reference of a study in the current folder or the checkout, ``None`` if there is none."""
    for folder in (Path(), conf_dir().parent):
        path = folder / REFERENCES / f"{study}.json"
        if path.is_file():
            return read_json(path)
    return None


def tolerance(versions: Mapping[str, str]) -> float:
    """Return the tolerance for a reference that was made with these versions of the libraries."""
    return SAME_VERSIONS if dict(versions) == library_versions() else OTHER_VERSIONS


def differences(computed: Numbers, expected: Numbers, allowed: float) -> list[Difference]:
    """Return the numbers of cells in both that differ by more than ``allowed`` (times max(1, size)).

    An infinite number and NaN equal only themselves.
    """
    wrong = []
    for cell in sorted(set(computed) & set(expected)):
        for quantity, value in sorted(expected[cell].items()):
            actual = computed[cell].get(quantity, math.nan)
            if not _same(actual, value, allowed):
                wrong.append(Difference(cell, quantity, value, actual))
    return wrong


def _same(computed: float, expected: float, allowed: float) -> bool:
    if math.isfinite(computed) and math.isfinite(expected):
        return abs(computed - expected) <= allowed * max(1.0, abs(expected))
    return computed == expected or (math.isnan(computed) and math.isnan(expected))


def kept_where_same(values: Mapping[str, float], committed: Mapping[str, float]) -> dict[str, float]:
    """Return numbers for a new reference: the committed ones where they agree, so that a diff shows what changed."""
    return {
        name: committed[name] if name in committed and _same(value, committed[name], SAME_VERSIONS) else value
        for name, value in values.items()
    }


def _run(
    study: Study, cells: list[Any], folder: str, title: str, reads: Sequence[Any] = ()
) -> tuple[Any, dict[str, str]]:
    """Run cells, and those that they read, in the gate's store, within the limits of the study.

    Return the store, and the reasons of failed cells.
    """
    store = Store(folder)
    if stored := sum(store.has(cell.key) for cell in cells):
        raise ExperimentError(f"{folder} has {stored} of the {len(cells)} cells; to recompute them, name a new folder")
    cells = [*reads, *cells]
    failed = run_cells(cells, store, progress=ProgressBar(f"gate: {title}"), limits=study.limits)
    counts, warned = count_warnings([cell.key for cell in cells], store)
    if warned:
        categories = ", ".join(f"{category} {count}" for category, count in counts.most_common())
        print(f"warnings in {len(warned)} of {len(cells)} cells ({categories}); --store FOLDER keeps their records")
    return store, failed


def _missing(cells: list[Any], computed: Any, failed: dict[str, str], expected: Any, methods: Any = None) -> list[str]:
    """Return a line for each failed cell, and for each cell that was not computed without having failed."""
    done = {*computed, *(cell_name(cell) for cell in cells if cell.label in failed)}
    reasons = [f"{label} failed: {reason}" for label, reason in failed.items()]
    return reasons + missing_cells(done, map(cell_name, cells), expected, methods)


def recompute_study(
    study: Study, folder: str, methods: list[str] | None = None, accept: str | None = None, verbose: bool = False
) -> int:
    """Recompute the study, or some of its methods, and compare it with its reference, or write that into a folder."""
    chosen = methods or list(study.all_methods)
    cells = [cell for method in chosen for cell in (*study_cells(study, method), *gate_case_cells(study, method))]
    wanted = {read.key for cell in cells for read in cell.reads}
    reads = [cell for cell in base_score_cells(study) if cell.key in wanted]
    store, failed = _run(study, cells, folder, study.name, reads)
    done = [cell for cell in cells if store.has(cell.key)]
    computed = fingerprints(done, store)
    weak = _no_better_than_constant(study, chosen, done, store, verbose)
    if accept:
        incomplete = [*_missing(cells, computed, failed, ()), *weak]
        if incomplete:
            return verdict(incomplete, f"no reference of {study.name} is written")
        _write_reference(Path(accept) / f"{study.name}.json", computed)
    committed = load_reference(study.name)
    if committed is None:
        raise ExperimentError(
            f"{REFERENCES}/{study.name}.json is not in this checkout; write it with --accept {REFERENCES}"
        )
    allowed = tolerance(committed["versions"])
    versions = "" if allowed == SAME_VERSIONS else ", since versions of libraries differ"
    wrong = _missing(cells, computed, failed, committed["cells"], methods)
    changed = [str(difference) for difference in differences(computed, committed["cells"], allowed)]
    wrong += [*weak, *changed]
    new = sorted({column_of(name) for name in set(computed) - set(committed["cells"])})
    note = f"; no reference yet for {', '.join(new)}" if new else ""
    only_read = {cell.key for cell in reads} - {cell.key for cell in cells}  # the progress counts them too
    read = f", with {len(only_read)} cells of base scores that they read" if only_read else ""
    done_text = f"{len(done)} cells of {study.name} recomputed{read}, compared to {allowed:g}{versions}"
    result = verdict(wrong, done_text + note)
    if changed:
        print(f"intended? multilab gate --study {study.name} --accept {REFERENCES}")
    return result


def _write_reference(path: Path, computed: Numbers) -> None:
    """Write a reference file."""
    committed: Numbers = read_json(path)["cells"] if path.is_file() else {}
    numbers, changed = {}, 0
    for cell, values in computed.items():
        old = committed.get(cell, {})
        numbers[cell] = kept_where_same(values, old)
        changed += bool(old) and numbers[cell] != old
    write_atomically(path, reference(numbers))
    new, gone = len(set(computed) - set(committed)), len(set(committed) - set(computed))
    print(f"{path}: {new} cells added, {changed} changed, {gone} removed; agreeing numbers keep their committed value")


def _no_better_than_constant(study: Study, methods: list[str], done: list[Any], store: Any, verbose: bool) -> list[str]:
    """Compare each method with the constant predictor on its first dataset; return a line per method that fails."""
    weak, rows = [], []
    for method in methods:
        dataset = study.datasets_of(method)[0]
        cells = [cell for cell in done if cell.method.name == method and cell.split_ref.dataset == dataset]
        if not cells:
            continue
        passed, gain, error = beats_constant(cells, store)
        rows.append(f"  {method:<24} {dataset:<20} {gain:.4f} (standard error {error:.4f})")
        if not passed:
            line = f"{method}: ranking loss {gain:.4f} below the constant predictor's on {dataset}"
            weak.append(f"{line}, less than 3 standard errors of {error:.4f}")
    better, named = len(rows) - len(weak), "methods and variants" if any(map(study.variant_of, methods)) else "methods"
    print(f"{better} of {len(rows)} {named} beat the constant predictor in ranking loss by 3 standard errors or more")
    if verbose:
        print("ranking loss of the constant predictor minus that of the method (larger is better):", *rows, sep="\n")
    return weak


def recompute_sample(
    study: Study,
    folder: str,
    size: int | None,
    seed: int | None = None,
    methods: list[str] | None = None,
    datasets: list[str] | None = None,
    names: list[str] | None = None,
) -> int:
    """Recompute random cells of a committed study, those that are named, or all; compare with its scores within 1e-6.

    Cells that did not finish within the limits of the study are left out.
    """
    folder_of_study = report_dir(study.name)
    expected = committed_numbers(folder_of_study)
    unfinished = {(row.dataset, row.split, row.method) for row in read_unfinished(folder_of_study).itertuples()}
    cells = [cell for method in methods or study.all_methods for cell in study_cells(study, method)]
    cells = [c for c in cells if c.row not in unfinished and c.split_ref.dataset in (datasets or study.datasets)]
    if names is not None:
        cells = [cell for cell in cells if cell_name(cell) in names]
        if unknown := sorted(set(names) - set(map(cell_name, cells))):
            raise ExperimentError(f"study {study.name} has no finished cell {unknown[0]}")
    if not cells:
        raise ExperimentError(
            f"study {study.name} has no finished cells of {', '.join(methods or study.all_methods)} on "
            f"{', '.join(datasets or study.datasets)}"
        )
    drawn = ""
    if size is not None and size < len(cells):
        if seed is None:
            # Other cells each time; the seed is printed, so that a failure can be repeated.
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        picked = np.random.default_rng(seed).choice(len(cells), size=size, replace=False)
        cells, drawn = [cells[index] for index in sorted(picked)], f" (seed {seed})"
    store, failed = _run(study, cells, folder, f"{len(cells)} cells of {study.name}{drawn}")
    done = [cell for cell in cells if store.has(cell.key)]
    extra = extra_quantities(study, find(study.paper).tables if study.paper else None)
    computed = fingerprints(done, store, study.conventions, extra)
    wrong = _missing(cells, computed, failed, ())
    wrong += [f"{name}: not in the committed scores" for name in sorted(set(computed) - set(expected))]
    wrong += [str(difference) for difference in differences(computed, expected, SAME_VERSIONS)]
    if len({(cell.row[0], cell.row[2]) for cell in done}) == 1:
        for line in _means_of_one_column(study, done, computed, expected):
            print(line)
    return verdict(wrong, f"{len(done)} cells of {study.name} recomputed{drawn}, compared to {SAME_VERSIONS:g}")


def _means_of_one_column(study: Study, done: list[Any], computed: Numbers, expected: Numbers) -> list[str]:
    """Return a table of one method on one dataset: its means recomputed, committed, and as the paper prints them."""
    dataset, _, method = done[0].row
    printed = _printed_means(study, dataset, method)
    cells = [cell_name(cell) for cell in done]
    shared = set.intersection(*({*computed[cell]} & {*expected.get(cell, ())} for cell in cells))
    metrics = [metric for metric in dict.fromkeys((*study.metrics, *printed)) if metric in shared]
    if not metrics:
        return []
    rows = [("", "recomputed", "committed", "printed" if printed else "")]
    for metric in metrics:
        ours, theirs = (f"{np.mean([numbers[cell][metric] for cell in cells]):.6f}" for numbers in (computed, expected))
        rows.append((metric, ours, theirs, printed.get(metric, "")))
    width = max(len(name) for name, *_ in rows)
    title = f"{method} on {dataset}, mean over {len(cells)} {'cell' if len(cells) == 1 else 'cells'}:"
    return [title, *(f"  {name:<{width}}{''.join(f'{text:>12}' for text in texts)}".rstrip() for name, *texts in rows)]


def _printed_means(study: Study, dataset: str, method: str) -> dict[str, str]:
    """Return the means that the study's paper prints of a method on a dataset, by metric."""
    if not study.paper:
        return {}
    tables = find(study.paper).tables
    ours = tables.aliases.named(tables.cells, study.conventions)
    printed = tables.cells["printed_mean"].where((ours["dataset"] == dataset) & (ours["method"] == method)).dropna()
    return dict(zip(ours.loc[printed.index, "quantity"], printed, strict=True))


def verdict(wrong: list[str], done: str) -> int:
    """Print what is wrong, and whether the gate passed; return the exit code."""
    for line in wrong[:40]:
        print(f"GATE: {line}")
    if len(wrong) > 40:
        print(f"GATE: and {len(wrong) - 40} more")
    print(f"gate {'FAILED' if wrong else 'passed'}: {done}")
    return int(bool(wrong))
