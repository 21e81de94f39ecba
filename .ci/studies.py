#!/usr/bin/env python3
"""Recompute ten results of each committed study that a change touches: python .ci/studies.py [BASE].

BASE is the commit to compare the checkout with (default: HEAD^1, the target branch of a merge). A study is touched by
its settings, those of its methods, and the files that compute its results. The results are drawn by the commit among
those that took less than twenty seconds. The data set ccd, which may not be copied, is left out, and so are methods
whose packages are not installed. Exit code 1: a number is wrong.
"""

import random
import subprocess
import sys
from pathlib import Path

from multilab.cells.errors import ExperimentError
from multilab.cells.inventory import base_method
from multilab.cells.loaded_code import reached
from multilab.cells.method import Method
from multilab.experiments.plan import Plan
from multilab.experiments.study import Study, load_study
from multilab.statistics.result_files import CELL, read_measured

RESULTS, SECONDS = 10, 20.0


def git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def touched(study: Study, changed: set[str]) -> bool:
    """Return whether a change of files, as git names them, can reach a result of a study."""
    if changed & {f"conf/study/{study.name}.yaml", f"reports/{study.name}/scores.csv.gz"}:
        return True
    for column, cells in Plan(study).by_method.items():
        name = base_method(column)
        try:
            files = {f"src/multilab/{file}" for file in reached(cells[0])}
        except ExperimentError:  # a package is not installed
            continue
        if changed & {*files, f"conf/method/{name}.yaml", f"conf/entrant/{name}.yaml"}:
            return True
    return False


def drawn(study: Study, seed: str) -> list[str]:
    """Return the names of some cheap results."""
    folder = Path("reports") / study.name
    measured = read_measured(folder)
    seconds = measured.filter(like="_seconds").sum(axis=1)
    cheap = measured[(seconds < SECONDS) & (measured["dataset"] != "ccd")]
    here = {cell.row for cell in Plan(study).cells if installed(cell.method)}
    cells = [row for row in cheap[CELL].itertuples(index=False, name=None) if row in here]
    return ["/".join(map(str, cell)) for cell in random.Random(seed).sample(cells, min(RESULTS, len(cells)))]


def installed(method: Method) -> bool:
    """Return whether the packages of a method are there."""
    try:
        method.check_installed()
    except ExperimentError:
        return False
    return True


def main(base: str = "HEAD^1") -> int:
    """Run the gate of each touched study; return 1 if one fails."""
    changed, commit, failed = set(git("diff", "--name-only", base).splitlines()), git("rev-parse", "HEAD"), False
    for keys in sorted(Path("reports").glob("*/keys.csv")):
        study = load_study(keys.parent.name)
        if not touched(study, changed):
            print(f"{study.name}: not touched", flush=True)
            continue
        cells = ",".join(drawn(study, commit))
        command = ["multilab", "gate", "--study", study.name, "--cell", cells]
        failed |= bool(subprocess.run(command, check=False).returncode)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
