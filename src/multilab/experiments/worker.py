"""The command `multilab study worker`: one of several workers on one store."""

import sys

from multilab.experiments.arguments import check_study
from multilab.experiments.cells import Cell, all_cells
from multilab.experiments.limits import CellLimits
from multilab.experiments.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.experiments.sharing import run_shared
from multilab.experiments.store import Store
from multilab.experiments.study import load_study
from multilab.experiments.train import sweep_cells


def run_worker(study: str | None, settings: list[str], lease: float, idle_exit: bool, retry_failed: bool) -> int:
    """Compute the missing cells of a study, or of a sweep, together with other workers; return an exit code."""
    name, cells, limits = _cells(study, settings)
    store, line, progress = Store(), StageLine(f"worker {name}"), ProgressBar(f"worker {name}")
    waiting: list[int] = []

    def wait(n_cells: int) -> None:
        if not waiting:
            print(f"waiting for {n_cells} cells that other workers compute, or that depend on these", file=sys.stderr)
        waiting.append(n_cells)

    report = run_shared(cells, store, lease, None, not idle_exit, retry_failed, progress, wait, limits)
    others = {"elsewhere": report.elsewhere, "left to other workers": report.left, "failed": len(report.failed)}
    reused = report.total - report.here - sum(others.values())
    counts = [f"{report.total} cells", f"{reused} reused", f"{report.here} computed here"]
    line.print(*counts, *(f"{number} {what}" for what, number in others.items() if number))
    print_warnings(cells, store)
    code = 0 if limits else exit_code(report.failed)  # under limits such a cell is a row of unfinished.csv
    if code:
        print("failed cells are not tried again; --retry-failed tries each once more", file=sys.stderr)
    return code


def _cells(study: str | None, settings: list[str]) -> tuple[str, list[Cell], CellLimits | None]:
    """Return the name, the cells and the limits of what the arguments describe."""
    if study is None:
        return "sweep", sweep_cells(settings, "multilab study worker"), None
    described = load_study(study)
    check_study(described)
    return described.name, all_cells(described), described.limits
