"""The table of a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

from multilab.commands.composition import cells_of
from multilab.core import read_json
from multilab.experiments.store import Store
from multilab.experiments.stored import Inventory
from multilab.experiments.summaries import result_rows
from multilab.reports.tables.results import as_text, print_table, result_table
from multilab.statistics.result_row import ResultRow


def sweep_table(rows: Sequence[ResultRow], metrics: Sequence[str]) -> str:
    """Return the table of a sweep as plain text: methods x metrics, the best marked, seconds and warnings."""
    return as_text(result_table(rows, metrics))


class RememberSweep(Callback):
    """Keeps where the jobs of a sweep leave their notes, so that `print_sweep` can show them at the end."""

    last: tuple[Path, list[str]] | None = None

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        """Remember the folder of the sweep and the metrics to show."""
        RememberSweep.last = (
            Path(config.hydra.sweep.dir),
            [config.metrics] if isinstance(config.metrics, str) else list(config.metrics),
        )


def print_sweep() -> None:
    """Print the table of the sweep that ran in this process, if one did; also when some of its jobs failed."""
    last, RememberSweep.last = RememberSweep.last, None
    if last is None:
        return
    folder, metrics = last
    notes = [read_json(path) for path in sorted(folder.glob("*/job-*.json"), key=_job_number)]
    inventory, rows = Inventory(Store()), []
    for conventions in dict.fromkeys(note["conventions"] for note in notes):
        keys = [cell.key for note in notes if note["conventions"] == conventions for cell in cells_of(note)]
        cells = (inventory.read(key) for key in dict.fromkeys(keys))
        rows += result_rows(inventory, (cell for cell in cells if cell.status == "done"), conventions)
    if rows:
        print()
        print_table(rows, metrics)
        jobs = [path for path in folder.glob("[!.]*") if path.is_dir()]  # submitit has a folder of its own, .submitit
        unfinished = sum(not any(path.glob("job-*.json")) for path in jobs)
        if unfinished:
            print(f"{unfinished} of {unfinished + len(notes)} jobs of the sweep failed and are not in the table")


def _job_number(path: Path) -> tuple[int, str]:
    number = path.parent.name
    return (int(number) if number.isdigit() else -1, number)
