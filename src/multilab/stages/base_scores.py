"""Make the out-of-fold base scores that the methods of a study read."""

from multilab.commands.arguments import study_of
from multilab.commands.receipts import write_receipt
from multilab.commands.running import run_stage
from multilab.experiments.cells import base_score_cells


def main(argv: list[str]) -> int:
    """`multilab base_scores study=NAME`."""
    study, _ = study_of(argv)
    code = run_stage("base_scores", study, base_score_cells(study))
    if code == 0:
        write_receipt(study, "base_scores")
    return code
