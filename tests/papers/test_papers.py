"""Every paper loads and its names exist, misspelt keys are refused; a new paper is a folder and a study."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from multilab.core.settings import TextLoader, parse_yaml
from multilab.experiments.study import load_study
from multilab.metrics import find_metric
from multilab.printed import PaperError, find, paper_names
from multilab.printed import paper as papers
from multilab.printed.published import mask

NAMES = ("imldf", "lskmddm", "lwmf", "mlekelm", "mlwse")


@pytest.mark.parametrize("name", NAMES)
def test_every_paper_loads_and_our_names_for_its_names_exist(name):
    paper, study = find(name), load_study(name)
    assert study.paper == name
    assert all((paper.content.title, paper.content.citation, paper.analyses, paper.figures))
    assert set(paper.tables.aliases.names.get("method", {}).values()) <= set(study.all_methods)
    assert all(find_metric(rule.metric) for rule in paper.tables.aliases.columns)
    for erratum in paper.tables.errata:
        assert set(erratum.where) == {"location"} or mask(paper.tables.cells, erratum.where).any(), erratum.id


def test_a_paper_that_is_not_here_is_named():
    assert set(NAMES) <= set(paper_names())
    with pytest.raises(PaperError, match="no paper is called 'mlwsee'; did you mean 'mlwse'"):
        find("mlwsee")


def test_words_that_yaml_takes_for_truth_values_are_words():
    content = parse_yaml("{on: ours, a: true, b: False, c: no, d: truely, e: 1, f: null}", TextLoader)
    assert content == {"on": "ours", "a": True, "b": False, "c": "no", "d": "truely", "e": 1, "f": None}


GOOD = {
    "paper.yaml": "title: Toy\nanalyses: [{analysis: halves, datasets: [d], methods: [m]}]\n",
    "names.yaml": "names: {method: {a: b}}\ncolumns: [{where: {table: 1}, metric: jaccard}]\n",
    "errata.yaml": "- {id: toy-a, where: {table: 1}, printed: a, right: b, why: c, effect: note}\n",
    "published.csv": "table,dataset,method,metric,mean,std,direction,printed_dataset,printed_method\n"
    "1,d,m,jaccard,0.50,,max,D,M\n",
    "halves.py": '"""Halves."""\n\nFILE = "halves"\n',
}


def toy(folder, monkeypatch, file="", old="", new=""):
    """The toy paper, in one of its files another text."""
    (folder / "toy").mkdir()
    for name, text in GOOD.items():
        assert name != file or old in text
        (folder / "toy" / name).write_text(text.replace(old, new) if name == file else text)
    monkeypatch.setattr(papers, "_FOLDER", folder)
    return papers.Paper("toy")


def test_a_paper_is_what_its_files_say(tmp_path, monkeypatch):
    paper = toy(tmp_path, monkeypatch)
    assert papers.paper_names() == ["toy"]
    (analysis,) = paper.analyses
    assert (analysis.module, analysis.datasets, analysis.methods) == ("multilab.papers.toy.halves", ("d",), ("m",))
    (erratum,) = paper.tables.errata
    assert (erratum.id, erratum.where, erratum.effect) == ("toy-a", {"table": 1}, "note")
    assert paper.tables.cells[["printed_mean", "mean"]].to_numpy().tolist() == [["0.50", 0.5]]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("paper.yaml", "title", "titel", r"papers/toy/paper\.yaml: unknown key 'titel'; did you mean 'title'"),
        ("paper.yaml", "methods", "method", r"papers/toy/paper\.yaml: analyses\[0\]: unknown key 'method'; did you"),
        ("paper.yaml", "halves", "halfs", r"papers/toy/paper\.yaml: no analysis is called 'halfs'; did you mean 'ha"),
        ("names.yaml", "names", "nmaes", r"papers/toy/names\.yaml: unknown key 'nmaes'; did you mean 'names'"),
        ("names.yaml", "method:", "methods:", r"papers/toy/names\.yaml: names: the key 'methods' must be dataset"),
        ("names.yaml", "metric", "metrik", r"papers/toy/names\.yaml: columns\[0\]: unknown key 'metrik'; did you"),
        ("errata.yaml", "right", "rigth", r"papers/toy/errata\.yaml: toy-a: unknown key 'rigth'; did you mean"),
        ("errata.yaml", "{table", "{tabel", r"papers/toy/errata\.yaml: toy-a: where: unknown key 'tabel'"),
        ("errata.yaml", "note}", "not}", r"papers/toy/errata\.yaml: toy-a: effect must be not_comparable, "),
        ("errata.yaml", "- {", "- {id: toy-a}\n- {", r"papers/toy/errata\.yaml: two entries have the id 'toy-a'"),
        ("published.csv", "direction,", "", r"papers/toy/published\.csv: no column direction; its columns are table"),
    ],
)
def test_a_misspelt_key_is_refused_with_its_file(tmp_path, monkeypatch, file, old, new, message):
    paper = toy(tmp_path, monkeypatch, file, old, new)
    with pytest.raises(PaperError, match=message):
        _ = paper.content, paper.analyses, paper.tables


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
1,digit-segments,KELM,hamming_loss,0.0001,0.0001,min,Segments,ML-KELM
""",
    "src/multilab/papers/toy/names.yaml": "names: {method: {KELM: mlkelm}}\n",
    "src/multilab/papers/toy/paper.yaml": """
title: A toy paper
citation: A. Toy (2000), On toys.
analyses:
  - {analysis: halves, datasets: [digit-segments], methods: [mlknn], splits: 1, settings: {shares: [0.5, 1.0]}}
""",
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
NOTEBOOK = """
from multilab.papers import load
from multilab.statistics import compare_on_splits

paper = load("toy")
shown = paper.compared().set_index("our_method")
print(*shown.index, *shown["printed"])
print(paper.table("halves")["share"].tolist())
print(abs(shown["ours"] - paper.means("hamming_loss").loc["digit-segments"]).max() < 1e-12)
scores = paper.scores.query("metric == 'hamming_loss'").pivot(index="split", columns="method", values="value")
print(compare_on_splits(scores["mlknn"], scores["mlkelm"], paper.direction("hamming_loss"), 1).n)
"""


@pytest.mark.slow  # a study from nothing to its page and to what a notebook reads: 20 s
def test_a_sixth_paper_is_one_folder_and_one_study(tmp_path: Path, checkout: Path) -> None:
    pytest.importorskip("hydra")
    for folder in ("src", "conf"):
        shutil.copytree(checkout / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        path = tmp_path / name
        assert not path.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB")}
    folders = {"MULTILAB_CELLS": str(tmp_path / "cells"), "MULTILAB_CACHE": str(tmp_path / "data")}
    environment |= {**folders, "MULTILAB_JOBS": "1", "PYTHONPATH": str(tmp_path / "src")}

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    python("-m", "multilab", "study", "run", "--study", "toy")
    page = (tmp_path / "reports" / "toy" / "index.html").read_text()
    assert "On toys." in page
    assert "Training rows by share of the toy paper." in page
    assert python("-c", NOTEBOOK).split("\n") == ["mlknn mlkelm 0.9 0.0001", "[0.5, 1.0]", "True", "2", ""]
