"""A sixth paper is one folder and one YAML: added to a copy of the package, it runs through all stages to its page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "conf/study/toy.yaml": """
title: A toy study
datasets: [digit-segments]
methods: [mlknn, mlkelm]
protocol: {kfold: 2, stratify: 1, seed: 0}
metrics: [hamming_loss]
headline: hamming_loss
paper: toy
""",
    "src/multilab/papers/toy/__init__.py": '"""A toy paper."""\n',
    "src/multilab/papers/toy/published.csv": """\
table,dataset,method,metric,mean,std,direction,printed_dataset,printed_method
1,digit-segments,mlknn,hamming_loss,0.9,0.001,min,Segments,ML-kNN
1,digit-segments,mlkelm,hamming_loss,0.0001,0.0001,min,Segments,ML-KELM
""",
    "src/multilab/papers/toy/claims.yaml": """
title: A toy paper
analyses:
  - {analysis: halves, datasets: [digit-segments], methods: [mlknn], splits: 1, settings: {shares: [0.5, 1.0]}}
claims:
  - {id: T1, sentence: Losses are small., check: below, methods: [mlknn, mlkelm], metric: hamming_loss, limit: 0.5}
""",
    "src/multilab/papers/toy/checks.py": '''"""Check of the toy paper."""

from multilab.claims.evidence import Finding, words


def below(evidence, methods, metric, limit):
    """Holds if every mean is below the limit."""
    means = evidence.means(metric, methods)
    sentence = f"On every dataset: {words(metric)} of each of {words(methods)} is below {limit:g}."
    return Finding.of(bool((means < limit).all(axis=None)), means.max().round(4).to_dict(), sentence)
''',
    "src/multilab/papers/toy/halves.py": '''"""Training rows by share."""

FILE = "halves"


def compute(unit, store):
    """Return the number of training rows for each share of them."""
    from multilab.cells.running import gather

    rows = len(gather(unit.cell, store).Y_train)
    shares = unit.settings["shares"]
    return {"share": shares, "rows": [int(rows * share) for share in shares]}


def finish(rows):
    """Return the columns in order."""
    return rows[["method", "dataset", "share", "rows"]]
''',
    "src/multilab/papers/toy/figures.py": '''"""Figure of the toy paper."""

from multilab.reports.figures import Figure, FigureSource
from multilab.reports.figures.style import new_axes, styled


@styled()
def halves(report, table):
    """Draw rows by share."""
    canvas, axes = new_axes(4, 3)
    axes[0, 0].plot(table["share"], table["rows"])
    return Figure.of(canvas, "Rows by share", "Training rows by share of the toy paper.")


FIGURES = (FigureSource("Rows by share (Fig. 1)", "halves", halves),)
''',
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Path:
    """A copy of package and settings with the toy paper, and nothing else changed."""
    root = tmp_path_factory.mktemp("sixth")
    for folder in ("src", "conf"):
        shutil.copytree(checkout / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        path = root / name
        assert not path.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return root


def multilab(root: Path, *arguments: str, code: int = 0) -> str:
    """Run the command line of the copy."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB")}
    folders = {"MULTILAB_CELLS": str(root / "cells"), "MULTILAB_CACHE": str(root / "data"), "MULTILAB_JOBS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "multilab", *arguments],
        cwd=root,
        env=kept | folders | {"PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.slow  # a study from nothing to its page: 20 s
def test_a_paper_is_one_folder_and_one_study(root: Path) -> None:
    pytest.importorskip("hydra")
    assert "report: " in multilab(root, "study", "run", "--study", "toy")
    page = (root / "reports" / "toy" / "index.html").read_text()
    for text in (
        "0.0001",  # both published cells, with our verdicts
        "0.9 ± ",
        "better",
        "worse",
        "Losses are small.",  # the claim, what its check requires, and its outcome
        "On every dataset: Hamming loss of each of ML-kNN, ML-KELM is below 0.5.",
        "holds",
        "Rows by share (Fig. 1)",  # the figure
        "Training rows by share of the toy paper.",
    ):
        assert text in page, text
    ledger = multilab(root, "study", "claims", "--study", "toy")
    assert "2 published cells of the paper toy" in ledger
    assert re.search(r"T1 +holds +fails +Losses are small", ledger)


def test_a_wrong_claim_is_found_before_any_cell_is_computed(root: Path) -> None:
    pytest.importorskip("hydra")
    path = root / "src/multilab/papers/toy/claims.yaml"
    right = path.read_text()
    path.write_text(right.replace("limit: 0.5", "limits: 0.5"))
    try:
        message = multilab(root, "study", "base-scores", "--study", "toy", code=2)
    finally:
        path.write_text(right)
    assert "papers/toy/claims.yaml: claim T1: check below: unknown argument 'limits'; did you mean 'limit'" in message
