"""Fetch, verify and parse the datasets of a study into the prepared store."""

from multilab import datasets, model_selection
from multilab.commands.arguments import study_of
from multilab.commands.progress import ProgressBar, StageLine
from multilab.commands.receipts import write_receipt
from multilab.papers import find


def main(argv: list[str]) -> int:
    """`multilab preprocess study=NAME`."""
    study, _ = study_of(argv)
    line = StageLine("preprocess")
    if study.paper:
        find(study.paper).verify()
    for name in ProgressBar("preparing data")(study.datasets, len(study.datasets)):
        datasets.prepare(name)
        model_selection.splits(name, study.protocol_of(name))
    write_receipt(study, "preprocess")
    line.print(f"{len(study.datasets)} data sets")
    return 0
