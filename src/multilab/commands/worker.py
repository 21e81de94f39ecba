"""The command `multilab worker`: one of several workers on one store."""

import sys

from multilab.commands.arguments import arguments, seconds_of
from multilab.commands.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.commands.train import sweep_cells
from multilab.experiments.arguments import check_study
from multilab.experiments.cells import Cell, all_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.limits import CellLimits
from multilab.experiments.sharing import run_shared
from multilab.experiments.store import Store
from multilab.experiments.study import load_study

_FLAGS = ("--idle-exit", "--retry-failed")


def run_worker(argv: list[str]) -> int:
    """Compute the missing cells of a study or of a sweep together with other workers; return an exit code."""
    flags, seconds, rest = _options(argv)
    name, cells, limits = _cells(rest)
    store, line, progress = Store(), StageLine(f"worker {name}"), ProgressBar(f"worker {name}")
    waiting: list[int] = []

    def wait(n_cells: int) -> None:
        if not waiting:
            print(f"waiting for {n_cells} cells that other workers compute, or that depend on these", file=sys.stderr)
        waiting.append(n_cells)

    report = run_shared(
        cells, store, seconds, None, "--idle-exit" not in flags, "--retry-failed" in flags, progress, wait, limits
    )
    others = {"elsewhere": report.elsewhere, "left to other workers": report.left, "failed": len(report.failed)}
    reused = report.total - report.here - sum(others.values())
    counts = [f"{report.total} cells", f"{reused} reused", f"{report.here} computed here"]
    line.print(*counts, *(f"{number} {what}" for what, number in others.items() if number))
    print_warnings(cells, store)
    code = 0 if limits else exit_code(report.failed)  # under limits such a cell is a row of unfinished.csv
    if code:
        print("failed cells are not tried again; --retry-failed tries each once more", file=sys.stderr)
    return code


def _options(argv: list[str]) -> tuple[set[str], float, list[str]]:
    """Return the flags, the duration of a lease and the other arguments."""
    flags, rest, lease, following = set(), [], "10m", iter(argv)
    for argument in following:
        option, equals, value = argument.partition("=")
        if option == "--lease":
            lease = value if equals else next(following, "")
        elif argument in _FLAGS:
            flags.add(argument)
        elif argument.startswith("-"):
            raise ExperimentError(f"{argument!r} is not an option here; expected --lease 10m, {', '.join(_FLAGS)}")
        else:
            rest.append(argument)
    seconds = seconds_of("--lease", lease)
    if seconds < 1:
        raise ExperimentError(f"--lease must be at least 1s, not {lease!r}")
    return flags, seconds, rest


def _cells(argv: list[str]) -> tuple[str, list[Cell], CellLimits | None]:
    """Return the name, the cells and the limits of what the arguments describe."""
    if any(argument.startswith("study=") for argument in argv):
        study = load_study(arguments(argv, "study")["study"])
        check_study(study)
        return study.name, all_cells(study), study.limits
    if not argv:
        raise ExperimentError("expected study=NAME, or the settings of a sweep as of `multilab train -m`")
    return "sweep", sweep_cells(argv, "multilab worker"), None
