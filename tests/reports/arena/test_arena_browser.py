"""The page of the arena in headless Chromium: sorting, the picker, two widths, without scripts."""

from __future__ import annotations

import json
import re

import pytest

from helpers.arena_sample import write_arena
from helpers.chromium import EXECUTABLE, Chromium
from multilab.arena import DataProfile, leaderboard_means, nearest_sets, rank_methods
from multilab.reports.arena.data import load_arena
from multilab.reports.arena.page import build_arena_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium")]

BOARD = "document.querySelector('.panel:not([hidden]) table.board')"
COLUMN = """[...{table}.tBodies[0].rows].filter(row => !row.hidden)
    .map(row => row.cells[{at}].dataset.v ?? row.cells[{at}].textContent)"""
PICKED = """[...document.querySelectorAll('#like-table tbody tr')].map(({cells}) =>
    [cells[0].textContent, +cells[1].dataset.v, +cells[2].textContent])"""
SET = """(form, name, value) => {
    const field = form.querySelector(`[name=${name}]`);
    field.value = value;
    field.dispatchEvent(new Event('input', {bubbles: true}));
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_arena(tmp_path_factory.mktemp("arena") / "reports")
    build_arena_page(folder)
    return folder


@pytest.fixture(scope="module")
def arena(folder):
    return load_arena(folder)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(chromium, folder):
    chromium.errors.clear()
    chromium.open((folder / "index.html").as_uri())
    yield chromium
    assert chromium.errors == []


def column(browser, at, table=BOARD):
    return browser.evaluate(COLUMN.format(table=table, at=at))


def enter(browser, selector, **values):
    for name, value in values.items():
        browser.evaluate(f"({SET})(document.querySelector('{selector}'), '{name}', {json.dumps(value)})")


def test_a_heading_sorts_by_click_and_by_key(browser):
    head = f"{BOARD}.tHead.rows[0].cells"
    states = f"[...{head}].map(head => head.getAttribute('aria-sort'))"
    assert browser.evaluate(states)[:3] == ["none", "descending", "none"]
    browser.evaluate(f"{head}[4].querySelector('button').click()")  # improvability: small is good
    shares = [float(text) for text in column(browser, 4)]
    assert shares == sorted(shares)
    assert browser.evaluate(states)[1:5] == ["none", "none", "none", "ascending"]
    browser.evaluate(f"{head}[4].querySelector('button').focus()")
    browser.press("Enter", 13)
    assert [float(text) for text in column(browser, 4)] == sorted(shares, reverse=True)
    assert browser.evaluate(states)[4] == "descending"
    browser.evaluate(f"{head}[0].querySelector('button').focus()")
    browser.press(" ", 32)
    names = column(browser, 0)
    assert names == sorted(names, key=str.lower)
    seconds = browser.evaluate(f"[...{head}].findIndex(head => head.textContent.startsWith('Fit'))")
    browser.evaluate(f"{head}[{seconds}].querySelector('button').click()")
    values = [float(text) for text in column(browser, seconds) if text]
    assert values == sorted(values)
    assert column(browser, seconds)[-1] == ""  # the stack was not measured


def test_one_table_is_shown_for_each_choice(browser, arena):
    shown = "[...document.querySelectorAll('#leaderboard .panel:not([hidden]) h3')].map(head => head.textContent)"
    assert browser.evaluate(shown) == ["Default and ensembled · All metrics"]
    enter(browser, "#leaderboard .choice", track="all", group="ranking")
    assert browser.evaluate(shown) == ["All tracks · Example-based ranking"]
    assert len(column(browser, 0)) == len(arena.pools["all"]["columns"])


@pytest.mark.parametrize("values", [(500, 80, 6), (1500, 1200, 40), (194, 43, 7), (10_000_000, 100_000, 1000)])
def test_the_picker_computes_what_python_computes(browser, arena, values):
    enter(browser, "#like form", **dict(zip(("rows", "features", "labels"), values, strict=True)))
    means = leaderboard_means(arena.content, "ensembled")
    profiles = {name: DataProfile(facts["n"], facts["d"], facts["q"]) for name, facts in arena.sets.items()}
    near = nearest_sets(DataProfile(*values), profiles, 5)
    text = browser.evaluate("document.querySelector('#nearest').textContent")
    assert text.startswith("Nearest sets: " + ", ".join(f"{name} (distance {d:.2f})" for name, d in near))
    assert ("Read the ranking with caution" in text) == (values[0] == 10_000_000)
    chosen = means.on([name for name, _ in near])
    table = rank_methods(chosen, "overall").table
    rows = {title: row for title, *row in browser.evaluate(PICKED)}
    assert len(rows) == len(table)
    for method, expected in table.iterrows():
        late = chosen.incomplete[:, chosen.methods.index(method)].sum()
        title = arena.title_on(method, [name for name, _ in near])
        assert rows[title] == [pytest.approx(expected["rank"], abs=1e-9), late]
    ranks = [row[1] for row in browser.evaluate(PICKED)]
    assert ranks == sorted(ranks)
    status = browser.evaluate("document.querySelector('#like-status').textContent")
    assert re.search(r"the first \d+ methods do not differ by it\.|the first differs from all others\.", status)


def test_the_fragment_of_the_address_holds_the_answer(browser):
    enter(browser, "#like form", rows=800, features=1000, labels=30)
    address = browser.evaluate("location.href")
    assert address.endswith("#like?rows=800&features=1000&labels=30")
    assert browser.evaluate("document.querySelector('#like-link').href") == address
    before = browser.evaluate(PICKED)
    browser.open(address)
    assert browser.evaluate(PICKED) == before
    assert browser.evaluate("document.querySelector('#like').getBoundingClientRect().top < innerHeight")


def test_nonsense_is_named(browser):
    enter(browser, "#like form", rows="")
    assert browser.evaluate("document.querySelector('#like-status').textContent").endswith("for: rows.")
    assert browser.evaluate("document.querySelector('#like form [name=rows]').getAttribute('aria-invalid')") == "true"


@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_scrolls_sideways_but_tables_and_figures(chromium, folder, tmp_path, width):
    shots = []
    for dark in (False, True):
        chromium.open((folder / "index.html").as_uri(), width, dark=dark)
        chromium.evaluate("document.querySelectorAll('details').forEach(element => { element.open = true; })")
        page = "document.documentElement"
        assert chromium.evaluate(f"{page}.scrollWidth <= {page}.clientWidth")
        outside = """[...document.querySelectorAll('input, select, button, p, h1, h2, h3, dd')]
            .filter(e => !e.closest('.scroll, .canvas, nav'))
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"""
        assert chromium.evaluate(outside) == 0
        chromium.screenshot(tmp_path / "page.png")
        shots.append((tmp_path / "page.png").read_bytes())
        assert chromium.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 24, 30)" if dark else "rgb(251, 250, 247)"
        )
    assert shots[0] != shots[1]


def test_without_scripts_all_tables_are_shown_and_no_control(chromium, folder):
    chromium.open((folder / "index.html").as_uri(), scripts=False)
    root = chromium.call("DOM.getDocument", depth=0)["root"]["nodeId"]

    def boxes(selector):
        nodes = chromium.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]
        shown = 0
        for node in nodes:
            try:
                shown += chromium.call("DOM.getBoxModel", nodeId=node)["model"]["width"] > 0
            except RuntimeError:  # it has no box: it is not shown
                continue
        return shown, len(nodes)

    assert boxes("#leaderboard .panel table") == (24, 24)
    assert boxes(".controls, .scripted")[0] == 0
    assert boxes("#like .unscripted") == (1, 1)


def test_closed_details_are_not_printed(browser):
    browser.call("Emulation.setEmulatedMedia", media="print")
    closed = "document.querySelector('details:not([open])')"
    assert browser.evaluate(f"{closed}.getBoundingClientRect().height") == 0
    assert browser.evaluate(f"(one => {{ one.open = true; return one.getBoundingClientRect().height; }})({closed})") > 0
    browser.call("Emulation.setEmulatedMedia", media="")
