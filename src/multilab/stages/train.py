"""Fit and score the methods of a study over its datasets and splits, or run a method manually through Hydra."""

from multilab.commands.arguments import study_of
from multilab.commands.receipts import write_receipt
from multilab.commands.running import run_stage
from multilab.core.messages import unknown_name
from multilab.experiments.cells import all_cells, study_cells
from multilab.experiments.errors import ExperimentError


def main(argv: list[str]) -> int:
    """`multilab train study=NAME [method=NAME]` (a DVC stage), or `multilab train [-m] dataset=... method=...`."""
    if not any(argument.startswith("study=") for argument in argv):
        from multilab.commands.train import train

        return train(argv)
    study, rest = study_of(argv, "method")
    name = rest.get("method")
    if name is not None:
        if name not in study.all_methods:
            raise ExperimentError(f"study {study.name}: {unknown_name('method', name, study.all_methods)}")
        return run_stage(f"train {name}", study, study_cells(study, name))
    code = run_stage("train", study, all_cells(study))
    if code == 0:
        write_receipt(study, "train")
    return code
