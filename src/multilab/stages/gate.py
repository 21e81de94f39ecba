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
    parser.add_argument(
        "--accept", metavar="FOLDER", help="write what was found there, as the reference of this Python"
    )
    asked = parser.parse_args(argv)
    study = load_study(asked.study)
    with tempfile.TemporaryDirectory(prefix="multilab-gate-") as folder:
        run = _sample if asked.sample else _whole
        return run(study, asked, asked.store or folder)


def _run(cells: list[Any], folder: str, what: str) -> tuple[Any, list[str]]:
    from multilab.experiments.store import Store
    from multilab.experiments.workers import run_cells

    store = Store(folder)
    failed = run_cells(cells, store, progress=Progress(f"gate: {what}"))
    return store, [f"{label} failed: {reason}" for label, reason in failed.items()]


def _whole(study: Study, asked: Any, folder: str) -> int:
    """Recompute the study and compare it with its reference."""
    from multilab.experiments import gate
    from multilab.experiments.cells import base_score_cells, guard_cells, study_cells

    methods = asked.methods.split(",") if asked.methods else list(study.methods)
    cells = [cell for method in methods for cell in (*study_cells(study, method), *guard_cells(study, method))]
    wanted = {read.key for cell in cells for read in cell.reads}
    reads = [cell for cell in base_score_cells(study) if cell.key in wanted]
    store, wrong = _run([*reads, *cells], folder, study.name)
    cells = [cell for cell in cells if store.has(cell.key)]
    found = gate.fingerprints(cells, store)
    for method in methods:
        chosen = [c for c in cells if c.method.name == method and c.part.dataset == study.datasets[0]]
        passed, gain, error = gate.beats_constant(chosen, store) if chosen else (False, 0.0, 0.0)
        told = f"{method}: ranking loss {gain:.4f} below the constant predictor's on {study.datasets[0]}"
        print(f"{told} (standard error {error:.4f})")
        if not passed:
            wrong.append(f"{told}, less than 3 standard errors of {error:.4f}")
    if asked.accept:
        write_atomically(Path(asked.accept) / gate.reference_name(study.name), gate.reference(found))
    committed = gate.load_reference(study.name)
    if committed is None:
        raise ExperimentError(f"no reference for study {study.name}; write one with --accept")
    level, allowed = gate.tolerance(committed["versions"])
    wrong += [str(difference) for difference in gate.compare(found, committed["cells"], allowed)]
    new = sorted({name.split("/", 2)[2] for name in set(found) - set(committed["cells"])})
    note = f"; no reference yet for {', '.join(new)}" if new else ""
    return _verdict(wrong, f"{len(cells)} cells of {study.name} recomputed, compared at {level} ({allowed:g}){note}")


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
    store, wrong = _run(cells, folder, f"{len(cells)} cells of {study.name} (seed {seed})")
    cells = [cell for cell in cells if store.has(cell.key)]
    names = scores["dataset"] + "/" + scores["split"].astype(str) + "/" + scores["method"]
    expected = {name: dict(zip(rows["metric"], rows["value"], strict=True)) for name, rows in scores.groupby(names)}
    found = gate.fingerprints(cells, store, study.conventions, study.paper)
    missing = sorted(set(found) - set(expected))
    wrong += [f"{name}: not in the committed scores.csv" for name in missing]
    wrong += [str(difference) for difference in gate.compare(found, expected, gate.L1)]
    return _verdict(wrong, f"{len(cells)} cells of {study.name} recomputed (seed {seed}), compared at L1 ({gate.L1:g})")


def _verdict(wrong: list[str], done: str) -> int:
    for line in wrong[:40]:
        print(f"GATE: {line}")
    if len(wrong) > 40:
        print(f"GATE: and {len(wrong) - 40} more")
    print(f"gate {'FAILED' if wrong else 'passed'}: {done}")
    return int(bool(wrong))
