"""Print the published cells and the claims of the papers, with our verdicts."""

import argparse

from multilab.commands.claims import claim_lines, verdict_lines
from multilab.experiments.conf import names
from multilab.experiments.errors import ExperimentError
from multilab.experiments.study import load_study


def main(argv: list[str]) -> int:
    """`multilab claims [--study NAME]`: from the committed ``cells.csv`` and ``claims.json``; default: all studies."""
    parser = argparse.ArgumentParser(prog="multilab claims", description=__doc__)
    parser.add_argument("--study", help="default: every study that has a paper")
    options = [f"--{text}" if text.startswith("study=") else text for text in argv]
    name = parser.parse_args(options).study
    studies = [load_study(name) for name in ([name] if name else names("study"))]
    listed = [study for study in studies if study.paper]
    if name and not listed:
        raise ExperimentError(
            f"study {name} is compared with no paper; `paper: NAME` in conf/study/{name}.yaml names one"
        )
    for study in listed:
        print(f"{study.name}: {study.title}")
        for line in (*verdict_lines(study), *claim_lines(study)):
            print(f"  {line}")
    return 0
