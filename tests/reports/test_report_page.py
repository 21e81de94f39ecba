"""Page of a made-up study: complete, self-contained, the same bytes every time."""

import base64
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from helpers.html_page import Page
from helpers.report_files import (
    DIRECTIONS,
    write_fake_study,
)

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import build_report, headline_markdown


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
    assert {"result", "ranks", "metrics", "data", "learned", "costs", "methods", "reproduce"} <= ids
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


@pytest.mark.slow
def test_same_files_give_the_same_bytes(page, fake, tmp_path):
    first = (fake / "index.html").read_bytes()
    elsewhere = shutil.copytree(fake, tmp_path / "fake", ignore=shutil.ignore_patterns("index.html"))
    assert build_report(elsewhere).read_bytes() == first


def test_optional_files_may_be_missing(copy):
    names = [
        "study.json",
        "datasets.json",
        "measured.csv",
        "statistics.json.gz",
        "environment.json",
    ]
    for name in names:
        (copy / name).unlink()
        page = Page(build_report(copy).read_text(encoding="utf-8"))
        assert page.stack == []
        assert any(t[0][0]["text"].startswith("Hamming loss") for t in page.tables)
    shutil.rmtree(copy / "figures")
    text = build_report(copy).read_text(encoding="utf-8")
    assert text.count(">Average rank<") == 3  # the head and two metrics: ranks are found without statistics.json.gz
    scores = pd.read_csv(copy / "scores.csv.gz").replace({"metric": dict.fromkeys(DIRECTIONS, "wonder")})
    scores.drop_duplicates(["dataset", "split", "method"]).to_csv(copy / "scores.csv.gz", index=False)
    text = build_report(copy).read_text(encoding="utf-8")
    assert "Neither ranks nor tests" in text
    assert "data:image" not in text


def test_study_of_one_method_and_one_dataset(tmp_path):
    folder = write_fake_study(tmp_path / "tiny", ["flags"], {"br": "BR"}, {"hamming_loss": "min"}, folds=2, learned=0)
    page = Page(build_report(folder).read_text(encoding="utf-8"))
    assert page.stack == []
    assert "nothing to compare" in (folder / "index.html").read_text(encoding="utf-8").lower()
    assert headline_markdown(folder).count("\n") == 3


def test_learned_pictures_of_many_labels_and_other_matrices(copy):
    rng = np.random.default_rng(1)
    kept = {"W_": rng.normal(0, 1, (90, 45)), "tables_": rng.random((11, 4)), "scale_": np.array(2.0)}
    np.savez(copy / "figures" / "learned-mlknn-yeast.npz", **kept)
    page = Page(build_report(copy).read_text(encoding="utf-8"))
    texts = [attributes["alt"] for tag, attributes in page.elements if tag == "img"]
    assert "Heatmap of the weights of ML-kNN on yeast in 2 blocks" in texts
    assert "tables_ of ML-kNN on yeast" in texts
    assert not any("scale_" in text or "affinit" in text for text in texts)


def test_pairs_without_a_difference_are_left_out_of_a_long_list(many):
    folder, _ = many
    page = build_report(folder).read_text(encoding="utf-8")
    assert "300 pairs, Holm-corrected, 0 differ" in page
    assert "Pairs that do not differ are in <code>statistics.json.gz</code>" in page
    assert "m00 – m01" not in page
