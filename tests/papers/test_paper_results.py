"""What a notebook reads: committed results of a study next to the printed numbers of its paper."""

import json

import numpy as np
import pandas as pd
import pytest

from multilab.papers import PaperResults, load, results
from multilab.printed import PaperError


def write_scores(folder, rows):
    folder.mkdir()
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    scores.assign(key=[f"{i}" for i in range(len(rows))]).to_csv(folder / "scores.csv.gz", index=False)


@pytest.fixture
def study(tmp_path):
    """Reports of imldf: two methods on Emotions, of which one was repeated on the same two splits."""
    rows = [("emotions", s, "imldf", "one_error", 0.2 + 0.1 * (s % 2) + 0.02 * (s // 2)) for s in range(4)]
    rows += [("emotions", s, "mldf", "one_error", 0.3 + 0.1 * s) for s in range(2)]
    write_scores(tmp_path / "imldf", rows)
    content = {
        "all_methods": ["imldf", "mldf"],
        "method_titles": {"imldf": "iMLDF", "mldf": "MLDF"},
        "conventions": "lamda",
        "variants": {},
    }
    (tmp_path / "imldf" / "study.json").write_text(json.dumps(content))
    (tmp_path / "imldf" / "datasets.json").write_text('[{"name": "emotions", "title": "Emotions"}]')
    return PaperResults("imldf", tmp_path / "imldf")


def test_means_titles_and_tables(study):
    assert study.means("one_error").loc["emotions"].to_dict() == pytest.approx({"imldf": 0.26, "mldf": 0.35})
    assert study.means("one_error", ["mldf"], ["emotions", "yeast"]).index.tolist() == ["emotions", "yeast"]
    assert (study.titles["imldf"], study.titles["emotions"]) == ("iMLDF", "Emotions")
    assert (study.direction("one_error"), study.direction("average_precision.matlab")) == ("min", "max")
    (study.folder / "costs.csv").write_text("method,seconds\nimldf,1.5\n")
    assert study.table("costs")["seconds"].tolist() == [1.5]
    with pytest.raises(PaperError, match=r"no table 'sweeps' in .*; choose from costs"):
        study.table("sweeps")
    with pytest.raises(PaperError, match="unknown metric 'speed'"):
        study.direction("speed")
    with pytest.raises(PaperError, match="no table of seconds"):
        _ = study.measured


def test_repetitions_of_a_split_are_averaged_and_rows_that_are_not_the_papers_add_their_error(study):
    """A printed mean of iMLDF is one of ten results, and the rows add the spread of the study's own splits."""
    content = json.loads((study.folder / "study.json").read_text())
    content |= {"all_methods": ["imldf"], "repetitions": {"n_repeats": 2, "methods": ["imldf"]}}
    (study.folder / "study.json").write_text(json.dumps(content))

    def spread(method):
        shown = study.compared({"imldf": "imldf", "mldf": "mldf"}).set_index("method")
        return shown.loc[method, "spread"]

    printed = study.printed.query("table == '3' and dataset == 'emotions' and metric == 'one_error'")
    printed = printed.set_index("method")["std"]
    for method in ("imldf", "mldf"):
        rows = study.scores.query("method == @method")["value"].std()
        both = printed[method] ** 2 / 10 + (0.1**2 / 2) / 2  # the means of the two splits are .1 apart
        assert spread(method) == pytest.approx(np.sqrt(both + rows**2))
    errors = pd.DataFrame([("emotions", "mldf", "one_error", 0.5)], columns=["dataset", "method", "metric", "error"])
    errors.to_csv(study.folder / "sampling.csv", index=False)
    assert spread("mldf") == pytest.approx(np.sqrt(both + 0.5**2))  # the larger of the two errors


def test_errata_and_printed_numbers_are_tables(study):
    assert {"id", "where", "printed", "right", "why", "effect"} == set(study.errata)
    assert study.errata.set_index("id").loc["imldf-mlknn", "where"] == "table 3; method mlknn"
    assert list(study.printed) == ["table", "dataset", "method", "metric", "value", "std", "text"]


def test_outside_of_a_checkout_one_line_says_where_to_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "__file__", str(tmp_path / "lib" / "multilab" / "papers" / "results.py"))
    with pytest.raises(PaperError, match="inside a checkout") as caught:
        load("lwmf")
    assert "\n" not in str(caught.value)
    with pytest.raises(PaperError, match="no paper is called 'lwfm'; did you mean 'lwmf'"):
        load("lwfm")


def test_a_folder_of_a_checkout_has_the_results(tmp_path, monkeypatch):
    (tmp_path / "reports").mkdir()
    write_scores(tmp_path / "reports" / "lwmf", [("yeast", 0, "lwmf", "coverage", 6.5)])
    write_scores(tmp_path / "reports" / "other", [("yeast", 0, "mlknn", "coverage", 6.4)])
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    paper = load("lwmf")
    assert paper.scores.to_numpy().tolist() == [["yeast", 0, "lwmf", "coverage", 6.5]]
    assert paper.study("other")["method"].tolist() == ["mlknn"]
    with pytest.raises(PaperError, match="has no scores"):
        paper.study("third")
