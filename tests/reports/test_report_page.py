"""Page of a made-up study: complete, self-contained, the same bytes every time."""

import base64
import re
import shutil

import pandas as pd
import pytest

from helpers.html_page import Page
from helpers.report_files import (
    DIRECTIONS,
    write_fake_study,
)

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import build_report, headline_markdown, load_report
from multilab.reports.tables.scores import rank_table


def test_page_is_well_formed_and_loads_nothing(page, fake):
    assert page.stack == []
    text = (fake / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|//[a-z]+\.", re.sub(r"base64,[A-Za-z0-9+/=]+", "", text))
    assert not any(tag in ("script", "link", "iframe", "object") for tag, _ in page.elements)
    sources = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert sources
    for source in sources:
        kind, _, data = source.partition("base64,")
        assert kind == "data:image/svg+xml;"
        svg = base64.b64decode(data).decode()
        assert "<dc:date>" not in svg
        assert all(ref.startswith(("#", "data:")) for ref in re.findall(r'href="([^"]*)"', svg))
    assert all(attributes.get("alt") for tag, attributes in page.elements if tag == "img")
    assert "url(" not in text.partition("</style>")[0]


def test_every_part_is_there(page, fake):
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {"costs", "scores", "tests", "reproduce"} <= ids
    targets = {a["href"][1:] for tag, a in page.elements if tag == "a" and a.get("href", "").startswith("#")}
    assert targets <= ids
    files = {a["href"] for tag, a in page.elements if tag == "a"} - {f"#{target}" for target in targets}
    assert {"scores.csv.gz", "statistics.json.gz", "measured.csv", "datasets.json", "study.json"} <= files
    assert all((fake / file).is_file() for file in files)
    text = (fake / "index.html").read_text(encoding="utf-8")
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
    assert rank_table(load_report(copy)) is not None  # found without statistics.json.gz
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
