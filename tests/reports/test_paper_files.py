"""Tables in LaTeX and diagrams as PDF of a study."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.report_files import DIRECTIONS, SETS, TITLES, random_means, write_fake_study, write_means

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.cli import main
from multilab.core import read_json
from multilab.reports import write_paper_files


def cells(text: str) -> list[list[str]]:
    """Return the cells of a LaTeX table, and check that all rows have as many as there are columns."""
    columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
    rows = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(row) for row in rows} == {columns}
    return rows


def test_tables_have_the_numbers_of_the_scores(fake, tmp_path):
    write_paper_files(fake, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "ranks.tex",
        *(f"scores-{metric}.tex" for metric in DIRECTIONS),
        *(f"ranks-{metric}.pdf" for metric in DIRECTIONS),
    }
    text = (tmp_path / "scores-macro_f1.tex").read_text(encoding="utf-8")
    scores = pd.read_csv(fake / "scores.csv.gz").query("metric == 'macro_f1'")
    means = scores.pivot_table(values="value", index="dataset", columns="method")[list(TITLES)]
    head, *rows, average = cells(text)
    assert head == [r"Macro F1 $\uparrow$", *TITLES.values()]
    for dataset, *values in rows:
        assert [float(re.search(r"\d\.\d+", value)[0]) for value in values] == [round(v, 4) for v in means.loc[dataset]]
        assert [r"\textbf" in value for value in values] == [*(means.loc[dataset] == means.loc[dataset].max())]
    assert [dataset for dataset, *_ in rows] == SETS
    stored = read_json(fake / "statistics.json.gz")["macro_f1"]["ranks"]
    assert [re.sub(r"[^\d.]", "", text) for text in average[1:]] == [f"{stored[m]:.2f}" for m in TITLES]


@pytest.mark.slow
def test_ranks_come_with_friedman(fake, tmp_path):
    write_paper_files(fake, tmp_path)
    rows = {row[0]: row[1:] for row in cells((tmp_path / "ranks.tex").read_text(encoding="utf-8"))}
    stored = read_json(fake / "statistics.json.gz")
    assert np.allclose([*map(float, rows[r"Friedman $\chi^2$"])], [stored[m]["chi2"] for m in DIRECTIONS], rtol=5e-3)
    assert rows["BR"][-1] == f"{stored['macro_f1']['ranks']['br']:.2f}"


def test_the_diagram_is_a_pdf_with_the_same_bytes_every_time(tmp_path):
    folder = write_means(tmp_path / "few", random_means(4))
    for name in ("first", "second"):
        write_paper_files(folder, tmp_path / name)
    first, second = ((tmp_path / name / "ranks-hamming_loss.pdf").read_bytes() for name in ("first", "second"))
    assert first.startswith(b"%PDF")
    assert first == second


def test_names_that_latex_would_read_as_commands_are_escaped(tmp_path):
    means = random_means(3).rename(index={"left": "a_b"}, columns={"m00": "50 % & more"})
    write_paper_files(write_means(tmp_path / "odd", means), tmp_path / "paper")
    text = (tmp_path / "paper" / "scores-hamming_loss.tex").read_text(encoding="utf-8")
    assert r"50 \% \& more" in text
    assert r"a\_b" in text


def test_a_variant_that_compares_methods_has_a_folder(tmp_path):
    means = random_means(4)
    means.columns = ["a", "b", "a-wide", "b-wide"]
    blocks = {"wide": {"methods": ["a-wide", "b-wide"], "datasets": list(means.index)}}
    write_paper_files(write_means(tmp_path / "varied", means, methods=["a", "b"], variants=blocks), tmp_path / "paper")
    head, *_ = cells((tmp_path / "paper" / "wide" / "scores-hamming_loss.tex").read_text(encoding="utf-8"))
    assert len(head) == 3


def test_the_command_writes_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_fake_study(tmp_path / "reports" / "quick", learned=0)
    assert main(["study", "report", "--study", "quick", "--latex", "paper"]) == 0
    assert (tmp_path / "paper" / "ranks.tex").is_file()
    assert not (tmp_path / "reports" / "quick" / "index.html").exists()
