"""Reading the files of a study: what is missing, broken or contradictory is named."""

import pytest

from helpers.report_files import write_json
from multilab.core import MultilabError, read_json, write_content

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import ReportError, build_report, headline_markdown, load_report
from multilab.reports.data import metric_title


def test_missing_scores_are_one_clear_error(copy):
    (copy / "scores.csv.gz").unlink()
    for make in (build_report, load_report, headline_markdown):
        with pytest.raises(ReportError, match=r"scores\.csv\.gz is missing") as caught:
            make(copy)
        assert isinstance(caught.value, MultilabError)


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("study.json", "{", "cannot be read"),
        ("study.json", "[]", "must hold a JSON object"),
        ("environment.json", "nonsense", "cannot be read"),
        ("scores.csv.gz", "dataset,method\na,b\n", "lacks the column"),
        ("statistics.json.gz", '{"hamming_loss": {"metric": "x"}}', "hamming_loss"),
        ("figures/learned-br-emotions.npz", "not a zip", "cannot be read"),
    ],
)
def test_broken_files_are_named(copy, name, text, word):
    write_content(copy / name, text)
    with pytest.raises(ReportError, match=word) as caught:
        build_report(copy)
    assert name.rpartition("/")[2] in str(caught.value)


def test_statistics_of_other_scores_are_refused(copy):
    stored = read_json(copy / "statistics.json.gz")
    stored["hamming_loss"] = stored["average_precision"]
    write_json(copy, "statistics.json.gz", stored)
    with pytest.raises(ReportError, match="does not belong to the scores"):
        build_report(copy)


def test_learned_files_are_found_by_method_and_dataset(fake):
    study = load_report(fake)
    assert [(item.method, item.dataset) for item in study.learned] == [
        ("mlwse_l21", "emotions"),
        ("mlwse_l21", "flags"),
    ]
    assert study.learned[0].label_names[0] == "amazed"


def test_metric_titles():
    assert metric_title("hamming_loss") == "Hamming loss"
    assert metric_title("wonder_of_it") == "Wonder of it"
