"""The pages of the arena in headless Chromium: sorting, filters, the picker, two widths, without scripts."""

from __future__ import annotations

import json
import re

import pytest

from helpers.arena_sample import SETS, write_arena
from helpers.chromium import EXECUTABLE, Chromium
from multilab.arena import DataProfile, leaderboard_means, nearest_sets, rank_methods
from multilab.reports.arena.data import load_arena
from multilab.reports.arena.page import build_arena_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium")]

BOARD = "document.querySelector('.panel:not([hidden]) table.board')"
COLUMN = """[...{table}.tBodies[0].rows].filter(row => !row.hidden)
    .map(row => row.cells[{at}].dataset.v ?? row.cells[{at}].textContent)"""
PICKED = """[...document.querySelectorAll('#like-table tbody tr')].map(({cells}) =>
    [cells[0].textContent, +cells[1].dataset.v, +cells[2].dataset.v, +cells[3].textContent])"""
SET = """(form, name, value) => {
    const field = form.querySelector(`[name=${name}]`);
    if (field.type === 'checkbox') field.checked = value; else field.value = value;
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
    seconds = browser.evaluate(f"[...{head}].findIndex(head => head.dataset.filter === 'seconds')")
    browser.evaluate(f"{head}[{seconds}].querySelector('button').click()")
    values = [float(text) for text in column(browser, seconds) if text]
    assert values == sorted(values)
    assert column(browser, seconds)[-1] == ""  # the stack was not measured


def test_filters_show_what_matches_and_count_it(browser):
    bar = "#leaderboard .filter"
    status = f"document.querySelector('{bar} [role=status]').textContent"
    assert browser.evaluate(status) == "9 of 9 methods shown."
    enter(browser, bar, text="ML")
    assert column(browser, 0) == ["MLDF", "ML-kNN"]
    enter(browser, bar, family="neighbours")
    assert browser.evaluate(status) == "1 of 9 methods shown."
    browser.evaluate(f"document.querySelector('{bar} button').click()")
    enter(browser, bar, seconds="0.1")
    assert sorted(column(browser, 0)) == ["ML-kNN", "No label"]
    enter(browser, bar, seconds="", licence="MIT")
    assert sorted(column(browser, 0)) == ["BOOMER", "LightGBM per label"]
    enter(browser, bar, licence="", track="ensembled")
    assert column(browser, 0) == ["Portfolio stack (ensembled) †"]


def test_one_table_is_shown_for_each_choice(browser, arena):
    shown = "[...document.querySelectorAll('#leaderboard .panel:not([hidden]) h3')].map(head => head.textContent)"
    assert browser.evaluate(shown) == ["Default and ensembled · All metrics"]
    enter(browser, "#leaderboard .choice", track="all", group="ranking")
    assert browser.evaluate(shown) == ["All tracks · Example-based ranking"]
    assert len(column(browser, 0)) == len(arena.pools["all"]["columns"])


@pytest.mark.parametrize(
    ("values", "n_sets", "group", "pool"),
    [
        ((500, 80, 6, 1.5, 0.25, False), 3, "overall", "default"),
        ((1500, 1200, 40, 2.0, 0.05, True), 1, "ranking", "ensembled"),
        ((3000, 300, 100, 3.0, 0.03, True), 5, "macro_auc", "default"),
        ((194, 43, 7, 3.3918, 0.4845, False), 5, "label", "default"),
        ((1000, 100, 10, 2.0, 0.2, False), 5, "example", "all"),
        ((1000, 100, 10, 2.0, 0.2, False), 3, "coverage", "tuned"),
    ],
)
def test_the_picker_computes_what_python_computes(browser, arena, values, n_sets, group, pool):
    names = ("rows", "features", "labels", "cardinality", "density", "text")
    enter(browser, "#like form", **dict(zip(names, values, strict=True)), sets=str(n_sets), metrics=group, track=pool)
    given = DataProfile(
        *(browser.evaluate(f"+document.querySelector('#like form [name={n}]').value") for n in names[:5]), values[5]
    )
    assert (given.rows, given.density) == (values[0], values[4])
    means = leaderboard_means(arena.content, pool)
    among = nearest_sets(given, arena.profiles, len(SETS))
    near = [(name, distance) for name, distance in among if name in means.datasets][:n_sets]
    text = browser.evaluate("document.querySelector('#nearest').textContent")
    assert all(f"{name} (distance {distance:.2f})" in text for name, distance in near)
    chosen = means.on([name for name, _ in near])
    table = rank_methods(chosen, group).table
    rows = {title: row for title, *row in browser.evaluate(PICKED)}
    assert len(rows) == len(table)
    for method, expected in table.iterrows():
        late = chosen.incomplete[:, chosen.methods.index(method)].sum()
        assert rows[arena.title_on(method, [name for name, _ in near])] == [
            pytest.approx(expected["rank"], abs=1e-9),
            pytest.approx(expected["win_rate"], abs=1e-9),
            late,
        ]
    ranks = [row[1] for row in browser.evaluate(PICKED)]
    assert ranks == sorted(ranks)


def test_the_fragment_of_the_address_holds_the_answer(browser, folder):
    given = {
        "rows": 800,
        "features": 1000,
        "labels": 30,
        "cardinality": 1.5,
        "text": True,
        "sets": "1",
        "track": "tuned",
    }
    enter(browser, "#like form", **given)
    address = browser.evaluate("location.href")
    assert "#like?rows=800&features=1000&labels=30&cardinality=1.5&density=0.05&text=true" in address
    assert browser.evaluate("document.querySelector('#like-link').href") == address
    before = browser.evaluate(PICKED)
    browser.open(address)
    assert browser.evaluate(PICKED) == before
    assert browser.evaluate("document.querySelector('#like').getBoundingClientRect().top < innerHeight")


def test_three_numbers_are_enough_and_nothing_else_is_assumed(browser, arena):
    first = next(iter(arena.content["sets"]))
    assert browser.evaluate("document.querySelector('#like [name=cardinality]').value") == ""
    enter(browser, "#like form", rows=first["n"], features=first["d"], labels=first["q"])
    nearest = browser.evaluate("document.querySelector('#nearest').textContent")
    assert nearest.startswith(f"Nearest sets: {first['name']} (distance 0.00)")
    assert "cardinality" not in browser.evaluate("location.href")
    status = browser.evaluate("document.querySelector('#like-status').textContent")
    assert "Critical difference of ranks" in status
    assert re.search(r"the first \d+ methods do not differ by it\.|the first differs from all others\.", status)


def test_cardinality_and_density_follow_each_other_and_nonsense_is_named(browser):
    value = "document.querySelector('#like form [name={}]').value".format
    status = "document.querySelector('#like-status').textContent"
    enter(browser, "#like form", labels=10, cardinality=2)
    assert browser.evaluate(value("density")) == "0.2"
    enter(browser, "#like form", density=0.5)
    assert browser.evaluate(value("cardinality")) == "5"
    assert browser.evaluate(value("like")) == ""
    enter(browser, "#like form", rows="")
    assert browser.evaluate(status) == "Enter a number above 0 for: rows."
    assert browser.evaluate("document.querySelector('#like form [name=rows]').getAttribute('aria-invalid')") == "true"
    enter(browser, "#like form", rows=100, cardinality=11)
    assert browser.evaluate(status) == "Labels per row cannot exceed the number of labels."
    enter(browser, "#like form", like="1")
    assert browser.evaluate(value("rows")) == str(SETS[1][2])
    enter(browser, "#like form", rows=10_000_000, features=100_000)
    assert "Read the ranking with caution" in browser.evaluate("document.querySelector('#nearest').textContent")


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
