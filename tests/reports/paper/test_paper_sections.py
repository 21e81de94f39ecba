"""Page of a paper: published tables, Friedman's test, errata, claims and variants."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from helpers.html_page import Page
from multilab.claims import ClaimsError, judge_tables
from multilab.claims import paper as papers
from multilab.claims.agreement import compared
from multilab.claims.paper import find
from multilab.claims.published import check_layouts
from multilab.core import write_content
from multilab.reports import ReportError, build_report, load_report
from multilab.reports.paper.claims import program_views
from multilab.reports.paper.errata import note
from multilab.reports.paper.friedman import friedman_tables
from multilab.reports.paper.printed_cells import names_on_page, tally
from multilab.reports.paper.printed_tables import kept_layers, paper_tables
from multilab.reports.tables.variants import variant_views
from multilab.statistics import average_ranks

NINE = ["ebr", "ecc", "eps", "rakel", "cde", "adaboost_mh", "mls", "mlwse_l1", "mlwse_l21"]
SETS = ["emotions", "flags", "virus-go"]
PAPER = find("mlwse")
METRICS = ["hamming_loss", "jaccard", "ranking_loss"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Made-up scores of the nine methods on three of the paper's sets, judged against the printed cells."""
    folder = tmp_path_factory.mktemp("reports") / "paper"
    folder.mkdir()
    rng = np.random.default_rng(0)
    columns = [*NINE, *(f"{method}-tuned" for method in ("ebr", "ecc"))]
    rows = [
        (d, s, m, metric, 0.3 + 0.01 * i + rng.normal(0, 0.01))
        for d in SETS
        for s in range(3)
        for i, m in enumerate(columns)
        for metric in [*METRICS, "accuracy_1mHL", "jaccard.mulan", "ranking_loss.mulan", "ranking_loss.sklearn"]
        if d != "flags" or not m.endswith("tuned")
    ]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    scores.to_csv(folder / "scores.csv.gz", index=False)
    ours = scores.groupby(["dataset", "method", "metric"])["value"].agg(["mean", "std"]).reset_index()
    ours["method"] = ours["method"].replace(PAPER.aliases.names["method"])  # the columns as printed
    judge_tables(PAPER.tables, ours).to_csv(folder / "cells.csv", index=False)
    info = {
        "datasets": SETS,
        "methods": NINE,
        "metrics": METRICS,
        "paper": "mlwse",
        "method_titles": {"ebr": "EBR", "ecc": "ECC", "ebr-tuned": "EBR (tuned)", "ecc-tuned": "ECC (tuned)"},
        "variants": {
            "tuned": {
                "description": "Tuned inside the training set.",
                "methods": ["ebr-tuned", "ecc-tuned"],
                "datasets": ["emotions", "virus-go"],
                "tune": {"n_trials": 20},
            }
        },
    }
    (folder / "study.json").write_text(json.dumps(info))
    chosen = [("emotions", s, "ebr-tuned", "n_estimators", str(10 + s), "ranking_loss", 0.2) for s in range(3)]
    chosen += [("emotions", 0, "ebr-tuned", "estimator", "null", "ranking_loss", 0.2)]
    head = ["dataset", "split", "method", "parameter", "value", "metric", "best"]
    pd.DataFrame(chosen, columns=head).to_csv(folder / "tuned.csv", index=False)
    measured = [("emotions", s, "ebr-tuned", 1.0, 1.0, 4.0) for s in range(3)]
    head = ["dataset", "split", "method", "fit_seconds", "predict_seconds", "tune_seconds"]
    pd.DataFrame(measured, columns=head).to_csv(folder / "measured.csv", index=False)
    claims = [
        {
            "id": "C1",
            "sentence": "ECC is best on Hamming loss.",
            "location": "2.4",
            "outcome": "fails",
            "description": "By Hamming loss: ecc has a lower average rank than ebr.",
            "description_in_paper": "By accuracy: ecc has a lower average rank than ebr.",
            "numbers": {"hamming_loss": dict.fromkeys(NINE, 2.25)},
            "in_paper": {"outcome": "holds", "accuracy": {"ecc": 1.5, "ebr": 1.75}},
            "expected": "open",
        },
        {
            "id": "C2",
            "sentence": "Two parts.",
            "outcome": "not testable",
            "reason": "no table",
            "numbers": {"first": {"outcome": "not testable", "reason": "no table"}, "second": {"outcome": "holds"}},
        },
        {
            "id": "C3",
            "sentence": "Wins.",
            "outcome": "holds",
            "numbers": {"ecc against ebr": "5-1", "ecc against x": "4-2"},
        },
    ]
    (folder / "claims.json").write_text(json.dumps(claims))
    return load_report(folder)


@pytest.fixture(scope="module")
def text(study):
    return build_report(study.folder, PAPER).read_text(encoding="utf-8")


def test_every_printed_cell_is_on_the_page_with_its_verdict(study, text):
    cells = pd.read_csv(study.folder / "cells.csv", dtype=str)
    section = re.search(r'<section id="paper">.*?</section>', text, re.S).group()
    for verdict, count in cells["verdict"].value_counts().items():
        assert section.count(f'<td class="v-{verdict.replace(" ", "-")}" title="{verdict}: ') == count
    assert Page(text).stack == []
    for cell in cells[cells["verdict"].isin(["better", "worse"])].itertuples():
        assert cell.reason in section


def test_tables_have_the_layout_of_the_paper(study):
    tables = {table.number: table for table in paper_tables(study, PAPER)}
    assert list(tables) == [str(i) for i in range(1, 8)]
    four = tables["4"]
    assert [block.title for block in four.blocks] == ["Accuracy", "Hamming loss", "Ranking loss"]
    assert four.blocks[0].heads[:2] == ("EBR", "ECC")
    assert [name for name, _ in four.blocks[0].rows][:3] == ["Emotions", "Flags", "Scene"]
    assert len(four.blocks[0].rows) == 13
    first = four.blocks[0].rows[0][1][0]
    assert (first.printed, first.keys) == ("0.517 ± 0.034", ("emotions", "ebr", "accuracy"))
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}", first.ours)
    column = [cells[0].verdict for _, cells in four.blocks[0].rows if cells[0]]
    agree = sum(verdict in ("match", "within") for verdict in column)
    assert four.blocks[0].agreeing[0] == f"{agree} of {sum(verdict != 'not run' for verdict in column)}"
    assert [block.title for block in tables["3"].blocks] == [
        "scenario 1",
        "scenario 2",
        "scenario 3",
        "scenario 4",
    ] or [len(block.rows) for block in tables["3"].blocks] == [6] * 4
    assert (tables["2"].blocks[0].corner, tables["6"].blocks[0].corner) == ("Label", "Method")
    assert len(tables["6"].blocks[0].heads) == 6


def test_a_block_says_what_ours_is_measured_as(study):
    four = next(t for t in paper_tables(study, PAPER) if t.number == "4")
    measured = dict(four.blocks[0].quantities)
    assert measured["1 - Hamming loss"] == "Accuracy of MLWSE-L1, MLWSE-L21"
    assert measured["Jaccard (conventions: mulan)"].startswith("Accuracy of EBR, ECC")
    assert four.blocks[1].quantities == ()  # Hamming loss is Hamming loss


def test_what_did_not_finish_in_the_paper_is_reported(study):
    four = next(t for t in paper_tables(study, PAPER) if t.number == "4")
    langlog = dict(four.blocks[0].rows)["Langlog"]
    assert langlog[NINE.index("cde")].printed == "DNF"
    assert ("did not finish in the paper either", 3) in four.not_run


def test_errata_are_grouped_and_every_cited_one_is_explained(study, text):
    tables = paper_tables(study, PAPER)
    for table in tables:
        cited = {
            name.partition("/")[0] for b in table.blocks for _, row in b.rows for c in row if c for name in c.errata
        }
        assert {n.id for n in table.notes} == cited
        assert all(n.why for n in table.notes)
    versions = next(n for t in tables if t.number == "4" for n in t.notes if len(n.values) > 5)
    assert all(where and printed and right for where, printed, right in versions.values)
    assert "mlwse-fig6" in text  # touches no cell, and stands at the end
    assert all(" " not in erratum.id for paper in papers.paper_names() for erratum in find(paper).errata)


def test_note_of_one_erratum_has_no_values():
    one = next(e for e in find("mlwse").errata if e.id == "mlwse-accuracy")
    erratum_note = note("mlwse-accuracy", [one], {"mlwse-accuracy": 28})
    assert (erratum_note.printed, erratum_note.right, erratum_note.values, erratum_note.cells) == (
        "accuracy",
        "1 - Hamming loss",
        (),
        28,
    )


def test_friedman_table_recomputes_the_print_and_ours(study):
    table = friedman_tables(study, PAPER)["7"]
    rows = {row.title: row for row in table.rows}
    assert (len(table.methods), table.datasets) == (9, 14)
    assert (rows["Accuracy"].printed, rows["Accuracy"].recomputed) == ("35.075", "37.381")
    assert (rows["Hamming loss"].printed, rows["Hamming loss"].recomputed) == ("6.348", "12.155")
    assert rows["Accuracy"].quantity == "Jaccard"
    assert rows["Hamming loss"].sizes == (14, 3, 3)
    assert (rows["Hamming loss"].degrees, rows["Hamming loss"].F_crit) == ("8, 16", "2.591")
    assert rows["Example F1"].one_definition == "–"  # not measured in this study
    values = study.summaries["hamming_loss"].mean
    best = average_ranks(values, "min").idxmin()
    ours = dict(table.figures)["Hamming loss"][1]
    assert ours.alt.startswith(f"Average ranks: {names_on_page(study, PAPER)('method', best)} ")
    assert table.other == (('printed "critical value" (is the Nemenyi CD)', "3.211"),)


def test_first_screen_counts_and_links(study, text):
    head = text[: text.index("</header>")]
    cells = study.cells[study.cells["group"] == "result"]
    judged = cells["verdict"].isin(["match", "within", "better", "worse", "differs"]).sum()
    assert f"{study.agreement.agree} of {judged} published results agree" in head
    assert f"Half of the printed results come out within {100 * study.agreement.median_gap:.1f}&nbsp;%." in head
    assert f"{100 * study.agreement.near[0]:.0f}&nbsp;% are within 1&nbsp;% of the printed number." in head
    assert "Of the 2 claims that are decided, 1 holds in full or in part." in head
    assert '<a href="#claim-C1">C1</a>' in head
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= ids
    share = 100 * (cells["verdict"] == "not run").mean()
    assert f'not run <span class="hint">{share:.1f} %</span>' in head


def test_first_screen_does_not_suggest_that_a_claim_holds_in_full(study, tmp_path):
    shutil.copytree(study.folder, tmp_path / "paper")
    claims = json.loads((study.folder / "claims.json").read_text())
    claims[2]["outcome"] = "holds in part"
    (tmp_path / "paper" / "claims.json").write_text(json.dumps(claims))
    text = build_report(tmp_path / "paper", PAPER).read_text(encoding="utf-8")
    assert "Of the 2 claims that are decided, 1 holds in part and none in full." in text


def test_claims_show_both_sides(text):
    section = re.search(r'<section id="claims">.*?</section>', text, re.S).group()
    assert "By Hamming loss: ECC has a lower average rank than EBR." in section
    assert "On the printed cells: By accuracy: ECC" in section
    assert re.search(r"Printed cells: <b class=\"good\">holds</b>", section)
    assert re.search(r"Our results: <b class=\"bad\">fails</b>", section)
    assert re.search(r"<th scope=\"row\">ECC</th><td>2\.250</td>", section)  # nine ranks stand upright
    assert "first: not testable" in section
    assert "second: holds" in section
    assert section.count("no table") == 1
    assert re.search(r"against EBR</th><td>5-1</td>", section)


def test_column_sets_are_compared_with_the_untuned(study, text):
    (tuned,) = variant_views(study)
    assert (tuned.variant.datasets, tuned.heads) == (("emotions", "virus-go"), ("EBR", "ECC"))
    table = next(t for t, _ in tuned.tables if t.metric == "hamming_loss")
    cell = dict(table.rows)["emotions"][0]
    means = study.scores[study.scores["metric"] == "hamming_loss"].groupby(["dataset", "method"])["value"].mean()
    change = means["emotions", "ebr-tuned"] - means["emotions", "ebr"]
    assert cell.delta == f"{change:+.4f}".replace("-", "−")
    assert cell.gain == (1 if change < 0 else -1)  # a loss
    ebr = tuned.balance[0].cells[0][0]
    assert re.fullmatch(r"[012]–[012] \([+−]0\.\d{4}\)", ebr)
    assert tuned.chosen[0].splits == ("n_estimators 10, estimator None", "n_estimators 11", "n_estimators 12")
    assert tuned.chosen[0].seconds == "4.00"
    section = re.search(r'<section id="variants">.*?</section>', text, re.S).group()
    for piece in ("Δ ", "n_trials 20", "Chosen values"):
        assert piece in section
    overview = re.search(r'<section id="result">.*?</section>', text, re.S).group()
    assert "tuned" not in overview


def test_a_variant_on_some_splits_is_compared_with_the_untuned_on_the_same(study):
    scores = study.scores
    kept = scores[~scores["method"].str.endswith("-tuned") | (scores["split"] < 2)]
    few = replace(study, board=replace(study.board, scores=kept))
    (tuned,) = variant_views(few)
    cell = dict(next(t for t, _ in tuned.tables if t.metric == "hamming_loss").rows)["emotions"][0]
    same = scores[(scores["metric"] == "hamming_loss") & (scores["dataset"] == "emotions") & (scores["split"] < 2)]
    means = same.groupby("method")["value"].mean()
    assert cell.delta == f"{means['ebr-tuned'] - means['ebr']:+.4f}".replace("-", "−")


def test_a_set_of_methods_that_the_study_does_not_run_otherwise_has_its_titles_and_no_balance(study):
    others = {**study.info, "methods": [m for m in study.methods if m not in ("ebr", "ecc")]}
    alone = replace(study, info=others, board=replace(study.board, methods=tuple(others["methods"])))
    (tuned,) = variant_views(alone)
    assert tuned.heads == ("EBR", "ECC")
    assert tuned.balance == ()


def test_statistics_of_a_set_must_belong_to_its_scores(study, tmp_path):
    folder = shutil.copytree(study.folder, tmp_path / "paper")
    write_content(folder / "statistics-tuned.json.gz", '{"hamming_loss": {"metric": "x"}}')
    with pytest.raises(ReportError, match=r"statistics-tuned\.json\.gz"):
        build_report(folder, PAPER)


def test_same_files_give_the_same_bytes(study, text):
    assert build_report(study.folder, PAPER).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("paper", papers.paper_names())
def test_every_paper_has_a_layout_for_each_of_its_tables(paper):
    cells = find(paper).published
    for number, part in cells.groupby("table"):
        form = find(paper).layout(str(number), part)
        free = {"dataset", "method", "metric"} - {form.block, form.row, form.column}
        assert all(part[key].nunique() == 1 for key in free)
        assert form.row != form.column


def test_axes_that_are_not_the_three_are_refused():
    with pytest.raises(ClaimsError, match=r"layout\.yaml: table 1: axes"):
        check_layouts({"1": {"axes": ["dataset"]}}, "papers/toy/layout.yaml")


def test_tally_and_compared():
    assert tally(["within", "match", "odd", "match"]) == (
        ("match", 2, "50.0 %"),
        ("within", 1, "25.0 %"),
        ("odd", 1, "25.0 %"),
    )
    assert compared(["match", "within", "worse", "not run"]) == (3, 4, 2, "66.7 %")
    assert compared(["not run"]) == (0, 1, 0, "–")


def test_a_number_printed_without_decimals_does_not_hide_ours(study):
    three = next(t for t in paper_tables(study, PAPER) if t.number == "3")
    zero = next(c for b in three.blocks for _, row in b.rows for c in row if c and c.printed == "0")
    cells = study.cells.copy()
    cells.loc[(cells[["dataset", "method", "metric"]] == list(zero.keys)).all(axis=1), "our_mean"] = "0.2544"
    again = next(t for t in paper_tables(replace(study, cells=cells), PAPER) if t.number == "3")
    ours = next(c for b in again.blocks for _, row in b.rows for c in row if c and c.keys == zero.keys).ours
    assert ours == "0.2544"


def test_our_columns_are_in_the_published_tables_without_a_verdict(checkout):
    study = load_report(checkout / "reports" / "lwmf")
    scores = study.scores[study.scores["method"] == "mlknn-all"].groupby(["metric", "dataset"])["value"].mean()
    tables = {table.number: table for table in paper_tables(study, find("lwmf"))}
    for number, metric, digits in (("2", "average_precision", 4), ("5", "coverage", 4)):
        table, (block,) = tables[number], tables[number].blocks
        column = block.heads.index("ML-kNN (all)")
        values = [cells[column].ours for _, cells in block.rows]
        ours = scores[metric]
        assert values[:-1] == [f"{ours[cells[0].keys[0]]:.{digits}f}" for _, cells in block.rows[:-1]]
        assert values[-1] == f"{ours.mean():.{digits}f}"
        assert block.agreeing[column] == "–"
        assert sum(count for _, count, _ in table.verdicts) == 35  # the printed cells alone
    assert "ML-kNN (all)" not in str(tables["6"].blocks)  # ranks are of the printed methods


def test_programs_show_titles_and_what_was_not_run(checkout):
    views = program_views(load_report(checkout / "reports" / "mlwse"), PAPER.programs)[1]
    columns = {view.title: view.columns for view in views}
    assert not [name for view in views for pair in view.columns.items() for name in pair if "_" in name]
    assert columns["Fair"]["MLWSE-L1 (stopped)"] == "MLWSE-L1 (stopped)"
    assert columns["As printed"]["MLWSE-L1 (stopped)"] == "not run"
    assert columns["As printed"]["SVM (linear)"] == "SVM (linear)"


def test_cells_of_a_cascade_say_how_many_layers_it_keeps(checkout):
    report = load_report(checkout / "reports" / "imldf")
    kept = kept_layers(report)
    own = {(item.method, item.dataset): item.arrays["n_layers_"] for item in report.learned if item.method == "imldf"}
    assert {method for method, _, _ in kept} == {"mldf", "imldf"}
    for (_, dataset), layers in own.items():
        measures = report.argument("imldf", dataset, "measure")
        assert [kept["imldf", dataset, measure] for measure in measures] == layers.tolist()
    cells = {cell.keys: cell for table in paper_tables(report, find("imldf")) for block in table.blocks
             for _, row in block.rows for cell in row if cell}  # fmt: skip
    shown = cells["chd-49", "imldf", "one_error"]
    assert shown.layers == kept["imldf", "chd-49", "one_error"] > 0
    assert cells["chd-49", "mlknn", "one_error"].layers == 0
