"""Fetch, verify and parse the datasets of a study into the prepared store."""

from __future__ import annotations

import json

from multilab.ground import write_atomically
from multilab.stages.common import Progress, StageLine, results_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab preprocess study=NAME`."""
    from multilab import datasets
    from multilab.experiments.results import dataset_facts

    study, _ = study_of(argv)
    line = StageLine("preprocess")
    facts = []
    for name in Progress("preparing data")(study.datasets, len(study.datasets)):
        datasets.prepare(name)
        digests = [split.digest for split in datasets.splits(name, study.protocol_of(name))]
        facts.append({**dataset_facts(name), "split_digests": digests})
    write_atomically(results_dir(study.name) / "datasets.json", json.dumps(facts, indent=1, sort_keys=True) + "\n")
    line.print(f"{len(facts)} data sets")
    return 0
