"""The reproducibility gate: recompute without caches, compare with the committed numbers, fail by name."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import Study, load_study
from multilab.ground import write_atomically
from multilab.stages.common import Progress, report_dir


def main(argv: list[str]) -> int:
    """`multilab gate [--methods A,B] [--accept]`, or `multilab gate --study NAME --sample N [--seed S]`."""
    parser = argparse.ArgumentParser(prog="multilab gate", description=__doc__)
    parser.add_argument("--study", default="quick", help="default: quick")
    parser.add_argument("--methods", help="only these methods of the study, comma-separated")
    parser.add_argument("--sample", type=int, help="recompute N random cells of the study's committed scores.csv")
    parser.add_argument("--seed", type=int, default=None, help="which random cells (default: others every time)")
    parser.add_argument("--store", help="folder for the cells (default: a temporary one, removed afterwards)")
    parser.add_argument("--accept", metavar="FOLDER", help="write the numbers there, as the reference of this Python")
    asked = parser.parse_args(argv)
    if asked.accept and (asked.methods or asked.sample):
        parser.error("--accept writes the reference of all methods; leave out --methods and --sample")
    study = load_study(asked.study)
    with tempfile.TemporaryDirectory(prefix="multilab-gate-") as folder:
        run = _sample if asked.sample else _whole
        return run(study, asked, asked.store or folder)


def _run(cells: list[Any], folder: str, title: str) -> tuple[Any, dict[str, str]]:
    """Run cells in the gate's store; return it, and the reasons of failed cells by label."""
    from multilab.experiments.store import Store
    from multilab.experiments.warning_counts import count_warnings
    from multilab.experiments.workers import run_cells

    store = Store(folder)
    failed = run_cells(cells, store, progress=Progress(f"gate: {title}"))
    counts, warned = count_warnings([cell.key for cell in cells], store)
    if warned:
        categories = ", ".join(f"{category} {count}" for category, count in counts.most_common())
        print(f"warnings in {len(warned)} of {len(cells)} cells ({categories}); --store FOLDER keeps their records")
    return store, failed


def _missing(cells: list[Any], found: Any, failed: dict[str, str], expected: Any, methods: Any = None) -> list[str]:
    """Return a line for each failed cell, and for each cell that was not computed without having failed."""
    from multilab.experiments import gate

    done = {*found, *(gate.cell_name(cell) for cell in cells if cell.label in failed)}
    reasons = [f"{label} failed: {reason}" for label, reason in failed.items()]
    return reasons + gate.missing_cells(done, map(gate.cell_name, cells), expected, methods)


def _whole(study: Study, asked: Any, folder: str) -> int:
    """Recompute the study and compare it with its reference."""
    from multilab.experiments import gate
    from multilab.experiments.cells import base_score_cells, guard_cells, study_cells

    methods = asked.methods.split(",") if asked.methods else list(study.all_methods)
    cells = [cell for method in methods for cell in (*study_cells(study, method), *guard_cells(study, method))]
    wanted = {read.key for cell in cells for read in cell.reads}
    reads = [cell for cell in base_score_cells(study) if cell.key in wanted]
    store, failed = _run([*reads, *cells], folder, study.name)
    done = [cell for cell in cells if store.has(cell.key)]
    found = gate.fingerprints(done, store)
    weak = [line for method in methods if (line := _no_better_than_constant(study, method, done, store))]
    if asked.accept:
        incomplete = [*_missing(cells, found, failed, ()), *weak]
        if incomplete:
            return _verdict(incomplete, f"no reference of {study.name} is written")
        write_atomically(Path(asked.accept) / gate.reference_name(study.name), gate.reference(found))
    committed = gate.load_reference(study.name)
    if committed is None:
        raise ExperimentError(f"no reference for study {study.name}; write one with --accept")
    level, allowed = gate.tolerance(committed["versions"])
    wrong = _missing(cells, found, failed, committed["cells"], methods if asked.methods else None)
    wrong += [*weak, *map(str, gate.compare(found, committed["cells"], allowed))]
    new = sorted({name.split("/", 2)[2] for name in set(found) - set(committed["cells"])})
    note = f"; no reference yet for {', '.join(new)}" if new else ""
    return _verdict(wrong, f"{len(done)} cells of {study.name} recomputed, compared at {level} ({allowed:g}){note}")


def _no_better_than_constant(study: Study, method: str, done: list[Any], store: Any) -> str | None:
    """Print how a method compares with the constant predictor on its first dataset; return the line if it fails."""
    from multilab.experiments import gate

    dataset = study.datasets_of(method)[0]
    cells = [cell for cell in done if cell.method.name == method and cell.part.dataset == dataset]
    if not cells:
        return None
    passed, gain, error = gate.beats_constant(cells, store)
    line = f"{method}: ranking loss {gain:.4f} below the constant predictor's on {dataset}"
    print(f"{line} (standard error {error:.4f})")
    return None if passed else f"{line}, less than 3 standard errors of {error:.4f}"


def _sample(study: Study, asked: Any, folder: str) -> int:
    """Recompute random cells of a committed study and compare them with its ``scores.csv`` at L1."""
    import numpy as np
    import pandas as pd

    from multilab.experiments import gate
    from multilab.experiments.cells import study_cells

    scores = pd.read_csv(report_dir(study.name) / "scores.csv", float_precision="round_trip")
    every = [cell for method in study.all_methods for cell in study_cells(study, method)]
    seed = asked.seed if asked.seed is not None else int(np.random.SeedSequence().generate_state(1)[0])
    picked = np.random.default_rng(seed).choice(len(every), size=min(asked.sample, len(every)), replace=False)
    cells = [every[index] for index in sorted(picked)]
    store, failed = _run(cells, folder, f"{len(cells)} cells of {study.name} (seed {seed})")
    done = [cell for cell in cells if store.has(cell.key)]
    names = scores["dataset"] + "/" + scores["split"].astype(str) + "/" + scores["method"]
    expected = {name: dict(zip(rows["metric"], rows["value"], strict=True)) for name, rows in scores.groupby(names)}
    found = gate.fingerprints(done, store, study.conventions, study.paper)
    wrong = _missing(cells, found, failed, ())
    wrong += [f"{name}: not in the committed scores.csv" for name in sorted(set(found) - set(expected))]
    wrong += [str(difference) for difference in gate.compare(found, expected, gate.L1)]
    return _verdict(wrong, f"{len(done)} cells of {study.name} recomputed (seed {seed}), compared at L1 ({gate.L1:g})")


def _verdict(wrong: list[str], done: str) -> int:
    for line in wrong[:40]:
        print(f"GATE: {line}")
    if len(wrong) > 40:
        print(f"GATE: and {len(wrong) - 40} more")
    print(f"gate {'FAILED' if wrong else 'passed'}: {done}")
    return int(bool(wrong))
