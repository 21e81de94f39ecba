"""Compute the metrics of a study from its stored scores."""

from multilab.commands.arguments import study_of
from multilab.commands.progress import StageLine, print_warnings
from multilab.commands.receipts import write_receipt
from multilab.commands.tables import write_tables
from multilab.experiments.store import Store


def main(argv: list[str]) -> int:
    """`multilab evaluate study=NAME`.

    Writes ``scores.csv``, ``keys.csv`` (the cell behind each score), ``measured.csv`` (times, memory) and, for tuned
    cells, ``tuned.csv`` (what the searches chose).
    """
    study, _ = study_of(argv)
    line, store = StageLine("evaluate"), Store()
    cells = write_tables(study, store)
    write_receipt(study, "evaluate")
    line.print(f"{len(cells)} cells", f"{len(study.metrics)} metrics")
    print_warnings(cells, store)
    return 0
