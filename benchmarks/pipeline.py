"""The complete pipeline: ``make reproduce`` after installation, and what orchestration adds to computing mlwse-core.

    MULTILAB_DATA=... python benchmarks/pipeline.py [reproduce core] [--cells FOLDER]

Each runs in a temporary copy of the checkout with an empty store. For mlwse-core, what ``dvc repro`` takes beyond
computing is orchestration: DVC itself, start-up of the stages and their workers, writing and checking cells, idle
workers at the end of a stage. Computing, shared by the jobs, is measured in two ways: all that happens inside cells
(``cell_seconds`` of their records, which holds what a worker's first cell spends on importing libraries), and fitting
and scoring alone. The data are parsed before the clock starts. Metrics, statistics, the report and MLflow make results,
so they are in neither and shown apart.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from common import Line, arguments, checkout_copy, show

REPRO = ["dvc", "repro", "reports/mlwse-core/dvc.yaml"]
RESULTS = ("evaluate", "stats", "publish")  # stages that make reports out of finished cells


def reproduce() -> list[Line]:
    """Time ``make reproduce`` where the environment is already there."""
    with checkout_copy() as (root, env):
        began = time.perf_counter()
        done = subprocess.run(
            ["make", "-o", ".venv/.ready", "reproduce"], cwd=root, env=env, capture_output=True, text=True
        )
        seconds = time.perf_counter() - began
        if done.returncode or not (root / "reports" / "quick" / "index.html").is_file():
            raise SystemExit(f"make reproduce failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return [Line("make reproduce, after installation", f"{seconds:.0f} s", "< 90 s", seconds < 90)]


def stage_times(lines: Iterable[tuple[float, str]], end: float) -> dict[str, float]:
    """Return the wall seconds from each stage's start to the next one's, from timed lines of ``dvc repro``."""
    starts = [(when, match[1]) for when, line in lines if (match := re.match(r"Running stage '([^']+)'", line))]
    nexts = [when for when, _ in starts[1:]] + [end]
    return {name: stop - when for (when, name), stop in zip(starts, nexts, strict=True)}


def repro(root: Path, env: dict[str, str]) -> tuple[float, float, dict[str, float]]:
    """Run ``dvc repro``; return its wall seconds, its processor seconds and the wall seconds of its stages."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    lines: list[tuple[float, str]] = []
    with TemporaryFile("w+") as errors:
        with subprocess.Popen(
            REPRO,
            cwd=root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as running:
            assert running.stdout is not None
            lines.extend((time.perf_counter(), line) for line in running.stdout)
        end = time.perf_counter()
        if running.returncode:
            errors.seek(0)
            raise SystemExit(f"dvc repro failed:\n{''.join(line for _, line in lines)}\n{errors.read()[-6000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return end - began, used, stage_times(lines, end)


def computing(cells: Path) -> tuple[int, float, float]:
    """Return how many cells there are, the seconds inside them, and those of fitting and scoring alone."""
    records = [json.loads(path.read_text()) for path in cells.glob("[0-9a-f]*/record.json")]
    fitting = sum(record["fit_seconds"] + record.get("predict_seconds", 0.0) for record in records)
    return len(records), sum(record["cell_seconds"] for record in records), fitting


def core(jobs: int, cells: Path | None) -> tuple[list[Line], list[str]]:
    """Time mlwse-core from an empty store and then with nothing to do."""
    with checkout_copy() as (root, env):
        store = (cells or root / ".cells").resolve()
        if store.is_dir() and any(store.iterdir()):
            raise SystemExit(f"{store} is not empty; what is stored there would not be computed")
        env |= {"MULTILAB_JOBS": str(jobs), "MULTILAB_CELLS": str(store)}
        prepare = ["multilab", "study", "preprocess", "--study", "mlwse-core"]  # parsing data is no overhead
        subprocess.run(prepare, cwd=root, env=env, check=True, capture_output=True)
        wall, used, stages = repro(root, env)
        count, inside, fitting = computing(store)
        repro(root, env)
        again, _, ran = repro(root, env)
    results = sum(seconds for name, seconds in stages.items() if name.rpartition(":")[2] in RESULTS)
    lines = [
        _beyond("the time inside cells", wall - results, inside / jobs),
        _beyond("fitting and scoring alone", wall - results, fitting / jobs),
        Line("mlwse-core, dvc repro from an empty store", f"{wall:.0f} s with {jobs} jobs"),
        Line("dvc repro of mlwse-core, nothing to do", f"{again:.2f} s", "< 2 s", again < 2, _what_ran(ran)),
    ]
    notes = [
        f"{count} cells; inside them {inside:.1f} s, fitting and scoring {fitting:.1f} s; {jobs} jobs share this",
        f"metrics, statistics, report and MLflow {results:.1f} s; processor time of everything {used:.1f} s",
        *(f"{name:<28}{seconds:7.1f} s" for name, seconds in stages.items()),
    ]
    return lines, notes


def _beyond(what: str, wall: float, work: float) -> Line:
    share = (wall - work) / work
    value = f"{100 * share:.1f} % ({wall - work:.1f} s beyond {work:.1f} s)"
    return Line(f"orchestration of mlwse-core beyond {what}", value, "< 5 %", share < 0.05)


def _what_ran(ran: dict[str, float]) -> str:
    return f"DIFFERENT: ran {', '.join(ran)}" if ran else "nothing ran"


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", metavar="reproduce|core", default=["reproduce", "core"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", type=Path, help="keep the cells of mlwse-core in this (empty) folder")
    chosen = parser.parse_args(argv)
    if "reproduce" in chosen.parts:
        show("Reproducing the quick study", reproduce(), json_path=chosen.json)
    if "core" not in chosen.parts:
        return
    if not os.environ.get("MULTILAB_DATA"):
        print("mlwse-core left out: MULTILAB_DATA names no mirror of the benchmark data, and downloads would be timed")
        return
    lines, notes = core(chosen.jobs, chosen.cells)
    show("Orchestration", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
