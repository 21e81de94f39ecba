"""The report of a made-up study: complete, self-contained, the right cell bold, the same bytes every time."""

import base64
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from multilab.claims.verdicts import COLUMNS
from multilab.ground import MultilabError, canonical_json
from multilab.statistics import compare, summarise

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import (
    ReportError,
    build_report,
    cd_diagram,
    convergence,
    headline_markdown,
    heatmap,
    load_study,
    save_headline_png,
)
from multilab.reports.study import metric_title
from multilab.reports.tables import cost_tables, number, score_table

DIRECTIONS = {"hamming_loss": "min", "average_precision": "max", "coverage": "min", "macro_f1": "max"}
TITLES = {
    "br": "BR",
    "mlknn": "ML-kNN",
    "mlwse_l1": "MLWSE-L1",
    "mlwse_l21": "MLWSE-L21",
    "mlkelm": "ML-KELM",
}
SETS = ["emotions", "flags", "gpositive-go", "yeast"]


def write_fake_study(
    folder, datasets=SETS, methods=TITLES, metrics=DIRECTIONS, folds=5, seed=0, control=None, learned=2
):
    """Write all files of a study with made-up numbers; each method a little better than the one before."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    scores, measured = [], []
    for d in datasets:
        level = rng.uniform(0.2, 0.5)
        for j, m in enumerate(methods):
            for s in range(folds):
                key = canonical_json([d, s, m]).encode().hex()[:64]
                for metric, direction in metrics.items():
                    quality = 0.01 * j + rng.normal(0, 0.01)
                    value = level + quality if direction == "max" else level - quality
                    scores.append((folder.name, d, s, m, metric, value * (8 if metric == "coverage" else 1), key))
                measured.append((d, s, m, *(rng.gamma(2, 0.1 * (j + 1), 2)), 80 + 10 * j, 1e5 * (j + 1), key))
    head = ["study", "dataset", "split", "method", "metric", "value", "key"]
    table = pd.DataFrame(scores, columns=head)
    table.to_csv(folder / "scores.csv", index=False)
    costs = ["fit_seconds", "predict_seconds", "peak_mb", "model_bytes"]
    pd.DataFrame(measured, columns=["dataset", "split", "method", *costs, "key"]).to_csv(
        folder / "measured.csv", index=False
    )
    statistics = {
        metric: compare(
            summarise(table, metric, list(datasets), list(methods)).mean,
            direction,
            control=control,
            metric=metric,
        ).to_dict()
        for metric, direction in metrics.items()
    }
    write_json(folder, "statistics.json", statistics)
    write_fake_texts(folder, datasets, methods, metrics, rng)
    for d in list(datasets)[:learned]:
        write_fake_learned(folder / "figures" / f"learned-mlwse_l21-{d}.npz", rng)
    return folder


def write_json(folder, name, value):
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


def write_fake_texts(folder, datasets, methods, metrics, rng):
    write_json(
        folder,
        "study.json",
        {
            "name": folder.name,
            "title": "Weighted stacking with sparse regularisation",
            "about": "The MLWSE paper <in small>: stacking against its base methods.",
            "datasets": list(datasets),
            "methods": list(methods),
            "method_titles": dict(methods),
            "metrics": list(metrics),
            "primary_metrics": list(metrics)[:2],
            "protocol": {"split": {"kfold": 5, "stratified": "iterative"}, "shuffle": True, "seed": 1},
            "alpha": 0.05,
            "seed": 1,
            "references": {"br": "Tsoumakas & Katakis 2007", "mlwse_l21": "Xia et al. 2021"},
            "settings": {
                "mlwse_l21": {"alpha": 0.05, "base_scores": ["br", "mlknn", "mlkelm"]},
                "br": {"C": 1.0},
            },
        },
    )
    cards = [
        {
            "name": d,
            "instances": int(rng.integers(200, 3000)),
            "features": int(rng.integers(20, 500)),
            "labels": 6,
            "cardinality": 1.868,
            "density": 0.311,
            "distinct_label_sets": 27,
            "digest": f"{i:x}" * 64,
        }
        for i, d in enumerate(datasets)
    ]
    write_json(folder, "datasets.json", cards)
    verdicts = ["match", "within", "within", "better", "worse", "not comparable", "not run"]
    places = [(d, metric) for metric in ("hamming_loss", "macro_f1") for d in datasets]
    cells = [
        ("4", d, "br", metric, "0.200", 0.01, metric, 0.2034, 0.012, verdict, f"because {verdict}", "")
        for (d, metric), verdict in zip(places, verdicts, strict=False)
    ]
    pd.DataFrame(cells, columns=list(COLUMNS)).to_csv(folder / "cells.csv", index=False)
    claims = [
        {
            "id": "C1",
            "sentence": "MLWSE-L21 is best on Hamming loss.",
            "outcome": "holds",
            "numbers": {"rank": 1.25},
        },
        {
            "id": "C8",
            "sentence": "Sparse solutions select classifiers.",
            "outcome": "fails",
            "numbers": {"zeros": 0},
        },
    ]
    write_json(folder, "claims.json", claims)
    environment = {
        "commit": "0" * 40,
        "machine": "x86_64, 2 cores",
        "python": "3.11.7",
        "versions": {"numpy": "2.4.6"},
    }
    write_json(folder, "environment.json", environment)


def write_fake_learned(path, rng, labels=6):
    names = ["amazed", "happy", "relaxing", "quiet", "sad", "angry"][:labels]
    Y = rng.random((200, labels)) < 0.4
    cosines = (Y.T @ Y.astype(float)) / np.sqrt(np.outer(Y.sum(0), Y.sum(0)))
    W = np.vstack([np.eye(labels) * scale for scale in (0.6, 0.3, 0.1)]) + rng.normal(0, 0.05, (3 * labels, labels))
    W[2 * labels :] = 0.0
    path_ = 10 + 90 * 0.93 ** np.arange(150.0)
    np.savez(path, W_=W, label_affinity_=cosines, objective_path_=path_, label_names=np.array(names))


class Page(HTMLParser):
    """All that the tests ask of a page: its elements, addresses and the cells of its tables."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.stack, self.elements, self.tables, self.row = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in self.VOID:
            self.stack.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append({"text": "", "bold": False, "class": attributes.get("class")})

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if ("td" in self.stack or "th" in self.stack) and self.tables:
            cell = self.tables[-1][-1][-1]
            cell["text"] += data
            cell["bold"] |= "b" in self.stack


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    return write_fake_study(tmp_path_factory.mktemp("reports") / "fake", control="mlwse_l21")


@pytest.fixture(scope="module")
def page(fake):
    return Page(build_report(fake).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    methods = {m: TITLES[m] for m in ("br", "mlknn", "mlwse_l21")}
    metrics = {m: DIRECTIONS[m] for m in ("hamming_loss", "average_precision")}
    return write_fake_study(
        tmp_path_factory.mktemp("reports") / "small", SETS[1:], methods, metrics, folds=3, learned=0
    )


@pytest.fixture
def copy(small, tmp_path):
    return shutil.copytree(small, tmp_path / "small")


def test_page_is_well_formed_and_loads_nothing(page, fake):
    assert page.stack == []
    text = (fake / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|//[a-z]+\.", re.sub(r"base64,[A-Za-z0-9+/=]+", "", text))
    assert not any(tag in ("script", "link", "iframe", "object") for tag, _ in page.elements)
    sources = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert sources
    for source in sources:
        kind, _, data = source.partition("base64,")
        if kind == "data:image/png;":
            assert b"tEXt" not in base64.b64decode(data)  # no date, no version
            continue
        assert kind == "data:image/svg+xml;"
        svg = base64.b64decode(data).decode()
        assert "<dc:date>" not in svg
        assert all(ref.startswith(("#", "data:")) for ref in re.findall(r'href="([^"]*)"', svg))
    assert all(attributes.get("alt") for tag, attributes in page.elements if tag == "img")
    assert "url(" not in text.partition("</style>")[0]


def test_every_part_is_there(page, fake):
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {"result", "ranks", "metrics", "paper", "data", "learned", "cost", "methods", "reproduce"} <= ids
    assert {f"metric-{m}" for m in DIRECTIONS} <= ids
    targets = {a["href"][1:] for tag, a in page.elements if tag == "a" and a.get("href", "").startswith("#")}
    assert targets <= ids
    text = (fake / "index.html").read_text(encoding="utf-8")
    for piece in (
        "0" * 16,
        "2.4.6",
        "multilab gate --study fake",
        "split.kfold",
        "Xia et al. 2021",
        "viewport",
    ):
        assert piece in text
    assert "&lt;in small&gt;" in text
    assert "<in small>" not in text
    verdicts = re.search(r"</dl>.*?</header>", text, re.S).group()
    for piece in ("<b>2</b> within", "<b>1</b> match", "<b>1</b> fails"):
        assert piece in verdicts


def test_bold_is_the_best_cell_of_each_row(page, fake):
    table = pd.read_csv(fake / "scores.csv")
    printed = {t[0][0]["text"].strip(): t for t in page.tables}
    for metric, direction in DIRECTIONS.items():
        rows = printed[f"{metric_title(metric)} {'↓' if direction == 'min' else '↑'}"]
        means = table[table["metric"] == metric].groupby(["dataset", "method"])["value"].mean().unstack()
        assert [cell["text"] for cell in rows[0][1:]] == list(TITLES.values())
        assert len(rows) == len(SETS) + 2
        for row in rows[1:-1]:
            values = means.loc[row[0]["text"], list(TITLES)].to_numpy()
            best = values.argmin() if direction == "min" else values.argmax()
            assert [cell["bold"] for cell in row[1:]] == [j == best for j in range(len(TITLES))]
            digits = 3 if metric == "coverage" else 4
            assert row[1 + best]["text"].startswith(f"{values[best]:.{digits}f}1 ± ")


def test_average_ranks_are_those_of_the_statistics(page, fake):
    stored = json.loads((fake / "statistics.json").read_text())
    foot = next(t for t in page.tables if t[0][0]["text"].startswith("Hamming loss"))[-1]
    expected = stored["hamming_loss"]["ranks"]
    assert [cell["text"] for cell in foot[1:]] == [f"{expected[m]:.2f}" for m in TITLES]
    overview = next(t for t in page.tables if t[0][0]["text"] == "Metric")
    assert [cell["text"] for cell in overview[1][1 : 1 + len(TITLES)]] == [cell["text"] for cell in foot[1:]]


def test_same_files_give_the_same_bytes(page, fake, tmp_path):
    first = (fake / "index.html").read_bytes()
    elsewhere = shutil.copytree(fake, tmp_path / "fake", ignore=shutil.ignore_patterns("index.html"))
    assert build_report(elsewhere).read_bytes() == first


def test_optional_files_may_be_missing(copy):
    names = [
        "study.json",
        "datasets.json",
        "measured.csv",
        "statistics.json",
        "claims.json",
        "cells.csv",
        "environment.json",
    ]
    for name in names:
        (copy / name).unlink()
        page = Page(build_report(copy).read_text(encoding="utf-8"))
        assert page.stack == []
        assert any(t[0][0]["text"].startswith("Hamming loss") for t in page.tables)
    shutil.rmtree(copy / "figures")
    text = build_report(copy).read_text(encoding="utf-8")
    assert text.count(">Average rank<") == 2  # two metrics: ranks are found without statistics.json
    scores = pd.read_csv(copy / "scores.csv").replace({"metric": dict.fromkeys(DIRECTIONS, "wonder")})
    scores.drop_duplicates(["dataset", "split", "method"]).to_csv(copy / "scores.csv", index=False)
    text = build_report(copy).read_text(encoding="utf-8")
    assert "Neither ranks nor tests" in text
    assert "data:image" not in text


def test_missing_scores_are_one_clear_error(copy):
    (copy / "scores.csv").unlink()
    for make in (build_report, load_study, headline_markdown):
        with pytest.raises(ReportError, match=r"scores\.csv is missing") as caught:
            make(copy)
        assert isinstance(caught.value, MultilabError)


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("study.json", "{", "cannot be read"),
        ("study.json", "[]", "must hold a JSON object"),
        ("claims.json", "nonsense", "cannot be read"),
        ("scores.csv", "dataset,method\na,b\n", "lacks the column"),
        ("statistics.json", '{"hamming_loss": {"metric": "x"}}', "hamming_loss"),
        ("figures/learned-br-emotions.npz", "not a zip", "cannot be read"),
    ],
)
def test_broken_files_are_named(copy, name, text, word):
    (copy / name).write_text(text)
    with pytest.raises(ReportError, match=word) as caught:
        build_report(copy)
    assert name.rpartition("/")[2] in str(caught.value)


def test_statistics_of_other_scores_are_refused(copy):
    stored = json.loads((copy / "statistics.json").read_text())
    stored["hamming_loss"] = stored["average_precision"]
    write_json(copy, "statistics.json", stored)
    with pytest.raises(ReportError, match=r"does not belong to scores\.csv"):
        build_report(copy)


def test_unfinished_cells_are_dashes(copy):
    scores = pd.read_csv(copy / "scores.csv")
    gone = (scores["dataset"] == "yeast") & (scores["method"] == "mlwse_l21") & (scores["split"] == 2)
    scores[~gone].to_csv(copy / "scores.csv", index=False)
    (copy / "statistics.json").unlink()
    table = score_table(load_study(copy), "hamming_loss")
    cell = dict(table.rows)["yeast"][-1]
    assert (cell.mean, cell.rank, cell.best) == ("–", "3", False)
    assert "Not finished, ranked last: mlwse_l21 on yeast." in build_report(copy).read_text(encoding="utf-8")


def test_one_split_has_no_spread(copy):
    scores = pd.read_csv(copy / "scores.csv")
    scores[scores["split"] == 0].to_csv(copy / "scores.csv", index=False)
    (copy / "statistics.json").unlink()
    table = score_table(load_study(copy), "average_precision")
    assert not table.spread
    assert "±" not in re.search(r'<section id="result">.*?</section>', build_report(copy).read_text(), re.S).group()


def test_study_of_one_method_and_one_dataset(tmp_path):
    folder = write_fake_study(tmp_path / "tiny", ["flags"], {"br": "BR"}, {"hamming_loss": "min"}, folds=2, learned=0)
    page = Page(build_report(folder).read_text(encoding="utf-8"))
    assert page.stack == []
    assert "nothing to compare" in (folder / "index.html").read_text(encoding="utf-8").lower()
    save_headline_png(folder, folder / "small.png")
    assert headline_markdown(folder).count("\n") == 3


def test_learned_files_are_found_by_method_and_dataset(fake):
    study = load_study(fake)
    assert [(item.method, item.dataset) for item in study.learned] == [
        ("mlwse_l21", "emotions"),
        ("mlwse_l21", "flags"),
    ]
    assert study.learned[0].label_names[0] == "amazed"
    text = (fake / "index.html").read_text(encoding="utf-8")
    assert "36 of 108 entries are exactly zero" in text
    assert "Correlation of the off-diagonal entries" in text


def test_costs_are_means_with_the_least_marked(fake):
    tables = cost_tables(load_study(fake))
    assert [table.unit for table in tables] == ["s", "s", "MB", "kB"]
    memory = tables[2]
    assert [cell.mean for cell in memory.rows[0][1]] == ["80.0", "90.0", "100", "110", "120"]
    assert [cell.best for cell in memory.rows[0][1]] == [True, False, False, False, False]
    assert memory.rows[0][1][0].std == "0"


def test_markdown_table(fake):
    lines = headline_markdown(fake).splitlines()
    assert lines[0] == "| Hamming loss ↓ | BR | ML-kNN | MLWSE-L1 | MLWSE-L21 | ML-KELM |"
    assert lines[1] == "|:---|---:|---:|---:|---:|---:|"
    assert len(lines) == 2 + len(SETS) + 1
    for line in lines[2:-1]:
        assert line.count("**") == 2
        assert re.search(r"\*\*0\.\d{4}\*\* ± 0\.\d{4} <sub>1</sub>", line)
    assert "Coverage" in headline_markdown(fake, "coverage")
    with pytest.raises(ReportError, match="no metric 'speed'"):
        headline_markdown(fake, "speed")


def test_headline_picture_is_a_stable_png(fake, tmp_path):
    first, second = (save_headline_png(fake, tmp_path / name).read_bytes() for name in ("a.png", "b.png"))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert len(first) > 20_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"),
        (12.345, "12.3"),
        (1234.5, "1\u202f234"),
        (0, "0"),
        (-0.5, "−0.500"),
        (3e-7, "3.00e-07"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (None, "–"),
    ],
)
def test_numbers_read_well(value, text):
    assert number(value) == text


def test_metric_titles():
    assert metric_title("hamming_loss") == "Hamming loss"
    assert metric_title("wonder_of_it") == "Wonder of it"


def axes():
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def test_diagram_shows_ranks_and_groups_of_the_comparison():
    table = pd.DataFrame(np.random.default_rng(0).random((8, 6)) + np.arange(6) / 3, columns=list("abcdef"))
    comparison = compare(table, "min", control="a")
    ax = axes()
    cd_diagram(comparison, ax, {"a": "Alpha $1"})
    texts = {text.get_text() for text in ax.texts}
    assert f"Alpha $1  {comparison.ranks['a']:.2f}" in texts
    assert f"{comparison.ranks['f']:.2f}  f" in texts
    assert f"CD = {comparison.cd_nemenyi:.3f}" in texts
    bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 4]
    spans = [(comparison.ranks[g[0]], comparison.ranks[g[-1]]) for g in comparison.groups]
    assert len(spans) > 1
    assert np.allclose(np.sort(bars, axis=0), np.sort(np.add(spans, (-0.03, 0.03)), axis=0))
    band = axes()
    cd_diagram(comparison, band, test="bonferroni-dunn")
    assert f"CD = {comparison.cd_bonferroni_dunn:.3f}" in {text.get_text() for text in band.texts}
    edges = band.collections[-1].get_paths()[0].get_extents()
    assert edges.x1 == pytest.approx(comparison.ranks["a"] + comparison.cd_bonferroni_dunn)


def test_diagrams_refuse_what_they_cannot_show():
    table = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"])
    with pytest.raises(ReportError, match="bonferroni-dunn"):
        cd_diagram(compare(table, "min"), axes(), test="bonferroni-dunn")
    with pytest.raises(ReportError, match="nothing to compare"):
        cd_diagram(compare(table[["a"]], "min"), axes())


def test_diagram_says_when_no_two_methods_can_differ():
    ax = axes()
    cd_diagram(compare(pd.DataFrame([[1.0, 2.0, 3.0]], columns=list("abc")), "min"), ax)
    assert any("no two methods can differ" in text.get_text() for text in ax.texts)


def test_heatmap_scales_and_marks():
    ax = axes()
    image = heatmap(np.array([[1.0, -2.0], [0.5, 0.0]]), ax, ["r", "s"], ["c", "d"], title="W")
    assert image.get_clim() == (-2.0, 2.0)
    assert ax.collections[0].get_offsets().tolist() == [[1.0, 0.0]]  # the dash of the one negative entry
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["c", "d"]
    positive = heatmap(np.array([[1.0, 2.0]]), axes(), limit=4.0)
    assert positive.get_clim() == (0.0, 4.0)
    grey = heatmap(np.array([[1.0, 2.0, 3.0]]), axes()).cmap(np.linspace(0, 1, 50))[:, :3].mean(axis=1)
    assert (np.diff(grey) < 0).all()
    heatmap(np.zeros((2, 2)), axes())


def test_convergence_is_the_distance_from_the_optimum():
    ax = axes()
    convergence({"a": np.array([5.0, 3.0, 2.0]), "b": np.array([5.0, 3.0, 2.0])}, ax, {"b": 1.0})
    assert ax.lines[0].get_ydata().tolist() == [3.0, 1.0]  # the last value stands for the optimum
    assert ax.lines[1].get_ydata().tolist() == [4.0, 2.0, 1.0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_learned_pictures_of_many_labels_and_other_matrices(copy):
    rng = np.random.default_rng(1)
    kept = {"W_": rng.normal(0, 1, (90, 45)), "tables_": rng.random((11, 4)), "scale_": np.array(2.0)}
    np.savez(copy / "figures" / "learned-mlknn-yeast.npz", **kept)
    page = Page(build_report(copy).read_text(encoding="utf-8"))
    words = [attributes["alt"] for tag, attributes in page.elements if tag == "img"]
    assert "Heatmap of the weights of ML-kNN on yeast in 2 blocks" in words
    assert "tables_ of ML-kNN on yeast" in words
    assert not any("scale_" in word or "affinit" in word for word in words)
