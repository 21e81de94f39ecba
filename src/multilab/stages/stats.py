"""Compare the methods of a study and build its report."""

from multilab.commands.arguments import study_of
from multilab.commands.progress import StageLine
from multilab.commands.receipts import restore_tables, write_receipt
from multilab.commands.study_report import write_report


def main(argv: list[str]) -> int:
    """`multilab stats study=NAME`: writes ``statistics.json``, ``metrics.json``, the verdicts and ``index.html``.

    Each variant of two methods or more is compared by itself in ``statistics-<variant>.json``, of the same form.
    """
    study, _ = study_of(argv)
    line = StageLine("stats")
    restore_tables(study.name)
    page = write_report(study)
    write_receipt(study, "stats")
    line.print(f"{len(study.all_methods)} methods on {len(study.datasets)} data sets", f"report {page}")
    return 0
