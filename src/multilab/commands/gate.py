"""Recomputation of a study, or of a random sample of its cells, for the gate."""

from pathlib import Path
from typing import Any

import numpy as np

from multilab.commands.progress import ProgressBar
from multilab.core import report_dir, write_atomically
from multilab.experiments import gate
from multilab.experiments.cells import base_score_cells, gate_case_cells, study_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.evaluation import extra_quantities
from multilab.experiments.execute import run_cells
from multilab.experiments.store import Store
from multilab.experiments.study import Study
from multilab.experiments.warning_counts import count_warnings
from multilab.papers import find
from multilab.statistics.result_files import read_unfinished


def _run(cells: list[Any], folder: str, title: str) -> tuple[Any, dict[str, str]]:
    """Run cells in the gate's store; return it, and the reasons of failed cells by label."""
    store = Store(folder)
    failed = run_cells(cells, store, progress=ProgressBar(f"gate: {title}"))
    counts, warned = count_warnings([cell.key for cell in cells], store)
    if warned:
        categories = ", ".join(f"{category} {count}" for category, count in counts.most_common())
        print(f"warnings in {len(warned)} of {len(cells)} cells ({categories}); --store FOLDER keeps their records")
    return store, failed


def _missing(cells: list[Any], computed: Any, failed: dict[str, str], expected: Any, methods: Any = None) -> list[str]:
    """Return a line for each failed cell, and for each cell that was not computed without having failed."""
    done = {*computed, *(gate.cell_name(cell) for cell in cells if cell.label in failed)}
    reasons = [f"{label} failed: {reason}" for label, reason in failed.items()]
    return reasons + gate.missing_cells(done, map(gate.cell_name, cells), expected, methods)


def recompute_study(
    study: Study, folder: str, methods: list[str] | None = None, accept: str | None = None, verbose: bool = False
) -> int:
    """Recompute the study, or some of its methods, and compare it with its reference, or write that into a folder."""
    chosen = methods or list(study.all_methods)
    cells = [cell for method in chosen for cell in (*study_cells(study, method), *gate_case_cells(study, method))]
    wanted = {read.key for cell in cells for read in cell.reads}
    reads = [cell for cell in base_score_cells(study) if cell.key in wanted]
    store, failed = _run([*reads, *cells], folder, study.name)
    done = [cell for cell in cells if store.has(cell.key)]
    computed = gate.fingerprints(done, store)
    weak = _no_better_than_constant(study, chosen, done, store, verbose)
    if accept:
        incomplete = [*_missing(cells, computed, failed, ()), *weak]
        if incomplete:
            return _verdict(incomplete, f"no reference of {study.name} is written")
        write_atomically(Path(accept) / f"{study.name}.json", gate.reference(computed))
    committed = gate.load_reference(study.name)
    if committed is None:
        raise ExperimentError(
            f"{gate.REFERENCES}/{study.name}.json is not in this checkout; write it with --accept {gate.REFERENCES}"
        )
    level, allowed = gate.tolerance(committed["versions"])
    wrong = _missing(cells, computed, failed, committed["cells"], methods)
    wrong += [*weak, *map(str, gate.differences(computed, committed["cells"], allowed))]
    new = sorted({name.split("/", 2)[2] for name in set(computed) - set(committed["cells"])})
    note = f"; no reference yet for {', '.join(new)}" if new else ""
    return _verdict(wrong, f"{len(done)} cells of {study.name} recomputed, compared at {level} ({allowed:g}){note}")


def _no_better_than_constant(study: Study, methods: list[str], done: list[Any], store: Any, verbose: bool) -> list[str]:
    """Compare each method with the constant predictor on its first dataset; return a line per method that fails."""
    weak, rows = [], []
    for method in methods:
        dataset = study.datasets_of(method)[0]
        cells = [cell for cell in done if cell.method.name == method and cell.split_ref.dataset == dataset]
        if not cells:
            continue
        passed, gain, error = gate.beats_constant(cells, store)
        rows.append(f"  {method:<24} {dataset:<20} {gain:.4f} (standard error {error:.4f})")
        if not passed:
            line = f"{method}: ranking loss {gain:.4f} below the constant predictor's on {dataset}"
            weak.append(f"{line}, less than 3 standard errors of {error:.4f}")
    better = len(rows) - len(weak)
    print(f"{better} of {len(rows)} methods beat the constant predictor in ranking loss by 3 standard errors or more")
    if verbose:
        print("ranking loss of the constant predictor minus that of the method (larger is better):", *rows, sep="\n")
    return weak


def recompute_sample(
    study: Study, folder: str, size: int, seed: int | None = None, methods: list[str] | None = None
) -> int:
    """Recompute random cells of a committed study and compare them with its ``scores.csv`` at L1.

    Cells that did not finish within the limits of the study are left out.
    """
    folder_of_study = report_dir(study.name)
    expected = gate.committed_numbers(folder_of_study)
    unfinished = {(row.dataset, row.split, row.method) for row in read_unfinished(folder_of_study).itertuples()}
    every = [cell for method in methods or study.all_methods for cell in study_cells(study, method)]
    every = [c for c in every if (c.split_ref.dataset, c.split_ref.split, c.method.name) not in unfinished]
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    picked = np.random.default_rng(seed).choice(len(every), size=min(size, len(every)), replace=False)
    cells = [every[index] for index in sorted(picked)]
    store, failed = _run(cells, folder, f"{len(cells)} cells of {study.name} (seed {seed})")
    done = [cell for cell in cells if store.has(cell.key)]
    extra = extra_quantities(study, find(study.paper).tables if study.paper else None)
    computed = gate.fingerprints(done, store, study.conventions, extra)
    wrong = _missing(cells, computed, failed, ())
    wrong += [f"{name}: not in the committed scores.csv" for name in sorted(set(computed) - set(expected))]
    wrong += [str(difference) for difference in gate.differences(computed, expected, gate.L1)]
    return _verdict(wrong, f"{len(done)} cells of {study.name} recomputed (seed {seed}), compared at L1 ({gate.L1:g})")


def _verdict(wrong: list[str], done: str) -> int:
    for line in wrong[:40]:
        print(f"GATE: {line}")
    if len(wrong) > 40:
        print(f"GATE: and {len(wrong) - 40} more")
    print(f"gate {'FAILED' if wrong else 'passed'}: {done}")
    return int(bool(wrong))
