"""The pages of the arena from an invented leaderboard: structure, numbers, sameness, errors."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil

import numpy as np
import pytest

from helpers.arena_sample import SETS, write_arena
from helpers.html_page import Page
from multilab.arena import leaderboard_means, rank_methods
from multilab.cli import main
from multilab.core import read_content, read_json, write_content
from multilab.reports.all_pages import study_page, write_overview
from multilab.reports.arena import panels
from multilab.reports.arena.data import OutdatedLeaderboardError, load_arena
from multilab.reports.arena.figures import CostPoint, cost_figure
from multilab.reports.arena.page import build_arena_page
from multilab.reports.arena.panels import finding, picker_data
from multilab.reports.errors import ReportError


class ArenaPage(Page):
    """A page with forms and inline figures."""

    VOID = (*Page.VOID, "input")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_arena(tmp_path_factory.mktemp("arena") / "reports")


@pytest.fixture(scope="module")
def text(folder):
    return build_arena_page(folder).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return ArenaPage(text)


@pytest.fixture(scope="module")
def content(folder):
    return read_json(folder / "leaderboard.json.gz")


@pytest.fixture(scope="module")
def default_folder(tmp_path_factory):
    return write_arena(tmp_path_factory.mktemp("arena") / "reports", tracks=("default",))


@pytest.fixture
def own_folder(default_folder, tmp_path):
    """Return a copy of an arena of one track, to be changed."""
    return shutil.copytree(default_folder, tmp_path / "reports" / "arena")


def board_tables(page):
    """Return the leaderboards of a page: rows of cells, without the head."""
    return [table[1:] for table in page.tables if table[0][1]["text"] == "Elo, 95 % interval"]


@pytest.mark.slow
def test_links_have_targets(folder, page):
    assert page.stack == []
    assert all(a.get("scope") in ("col", "row") for tag, a in page.elements if tag == "th")
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    for address in (a["href"] for _, a in page.elements if "href" in a):
        file, _, fragment = address.partition("#")
        if not file:
            assert fragment in identifiers
        elif file != "../index.html":
            assert (folder / file).is_file()


@pytest.mark.slow
def test_every_number_of_the_leaderboards_is_that_of_the_file(content, page):
    tables = iter(board_tables(page))
    for pool in content["pools"]:
        for group in content["groups"]:
            board, rows, expected = pool["boards"][group["name"]], next(tables), {}
            for at, column in enumerate(pool["columns"]):
                method = content["methods"][column]
                title = method["title"] + ("" if method["track"] == "default" else f" ({method['track']})")
                shares = [board["win_rate"][at], board["improvability"][at], pool["unfinished"][at]]
                elo = f"{board['elo'][at]:.0f} {board['elo_low'][at]:.0f}–{board['elo_high'][at]:.0f}"
                expected[title] = [elo, f"{board['rank'][at]:.2f}", *(f"{100 * share:.1f}" for share in shares)]
            texts = {row[0]["text"]: [cell["text"].replace(" ≈", "") for cell in row[1:6]] for row in rows}
            if "portfolio_stack@ensembled" in pool["columns"] and not pool["name"].endswith("-unseen"):
                expected["Portfolio stack (ensembled) †"] = expected.pop("Portfolio stack (ensembled)")
            assert texts == expected
            elos = [float(row[1]["text"].split()[0]) for row in rows]
            assert elos == sorted(elos, reverse=True)
    assert next(tables, None) is None


def test_methods_marked_as_equal_are_those_within_the_critical_difference(content, page):
    boards = [pool["boards"][group["name"]] for pool in content["pools"] for group in content["groups"]]
    for board, rows in zip(boards, board_tables(page), strict=True):
        near = [rank for rank in board["rank"] if rank - min(board["rank"]) <= board["cd"]]
        assert sum("≈" in row[2]["text"] for row in rows) == len(near)


def test_the_finding_names_the_leaders_the_tested_the_cheap_and_the_unfinished(folder, text):
    arena = load_arena(folder)
    found = finding(arena)
    pool = arena.pools["ensembled"]  # of the pools with all sets, the one with the most methods
    board = pool["boards"]["overall"]
    best = pool["columns"][int(np.argmax(board["elo"]))]
    (leaders,) = found["leaders"]  # no stack leads, so that the unseen sets are not shown
    assert (leaders["columns"], leaders["sets"]) == (9, 7)
    first, *others = leaders["rows"]
    assert (first["group"], first["method"]) == ("All metrics", arena.columns[best].title)
    level = sum(rank <= min(board["rank"]) + board["cd"] for rank in board["rank"])
    assert first["level"] == level
    assert [row["group"] for row in others] == ["Example-based decisions", "Label-based", "Example-based ranking"]
    assert f"<b>No single method wins: the first {level} of 9 are not told apart on 7 sets.</b>" in text
    assert [(each["sets"], each["first"], each["metrics"]) for each in found["tested"]] == [(7, 1, 16), (5, 0, 16)]
    title = found["tested"][0]["title"]
    assert f"On 7 sets {title} is first by mean rank in 1 of 16 metrics." in text
    assert f"On 5 unseen sets {title} is first by mean rank in 0 of 16 metrics." in text
    second, *_ = found["budgets"]["rows"]
    fast = [name for name in pool["columns"] if (arena.columns[name].fit_seconds or 9) <= 1]
    best = max(fast, key=lambda name: board["elo"][pool["columns"].index(name)])
    assert (second["limit"], second["name"]) == ("1 second", arena.columns[best].name)
    assert found["unfinished"] == {"share": "2.1", "methods": 2, "of": 11, "most": [("MLDF", "17"), ("BOOMER", "3")]}


def test_the_finding_counts_sets_of_one_source_once(folder):
    arena = load_arena(folder)
    assert finding(arena)["sources"] is None
    one, *others = arena.content["sets"]
    for facts in others:
        facts["source"] = "crawl"
    ranks = rank_methods(leaderboard_means(arena.content, "ensembled"), "overall").dataset_ranks
    expected = (ranks.loc[one["name"]] + ranks.drop(one["name"]).mean()) / 2
    best = arena.columns[expected.idxmin()].title
    assert finding(arena)["sources"] == {"sources": 2, "method": best, "rank": pytest.approx(expected.min(), abs=0.005)}


def test_methods_without_results_and_libraries_are_listed(page):
    (methods,) = (table for table in page.tables if any(cell["text"] == "Library" for cell in table[0]))
    at = [cell["text"] for cell in methods[0]].index("Library")
    libraries = {row[0]["text"]: row[at]["text"] for row in methods[1:]}
    assert libraries["LightGBM per label"] == "lightgbm 4.7.0"
    assert libraries["Portfolio stack (ensembled) †"] == "–"
    (absent,) = (table for table in page.tables if table[0][2]["text"] == "Why")
    assert [cell["text"] for cell in absent[1]] == [
        *("TabICL", "tabicl", "not run here: weights", "networks", "BSD-3-Clause", "Needs torch. Its paper."),
    ]


def test_the_tested_method_is_counted_in_each_pool_and_the_gain_by_tuning_is_shown(folder, content, page):
    counted = panels.tested_panels(load_arena(folder))
    pools = [pool for pool in content["pools"] if pool["name"].startswith(("ensembled", "all"))]
    for pool, panel in zip(pools, counted, strict=True):
        own, firsts = pool["tested"]["column"], 0
        for name in pool["tested"]["tests"]:
            ranks = dict(zip(pool["columns"], pool["boards"][name]["rank"], strict=True))
            firsts += ranks[own] == min(ranks.values())
        assert (panel["first"], panel["metrics"], panel["sets"]) == (firsts, 16, len(pool["sets"]))
    (tuning,) = (table for table in page.tables if table[0][1]["text"] == "Elo at own values")
    assert [row[0]["text"] for row in tuning[1:]] == ["LightGBM per label", "ML-kNN"]
    assert tuning[0][5]["text"] == "Gain in Macro AUC"


def test_elo_and_sets_won_of_the_tuned_methods_sort_as_numbers(text):
    section = text.partition('<section id="tuning">')[2].partition("</section>")[0]
    values = re.findall(r'<td class="left" data-v="([^"]*)">(\d+)', section)
    assert len(values) == 2 * 3
    assert all(round(float(value)) == int(shown) for value, shown in values)
    assert "with 4 sources of sets it can detect nothing (the smallest p is 0.25)" in section


def test_text_in_names_is_escaped(text):
    assert "RF-PCT &lt;forest&gt;" in text
    assert "<forest>" not in text


def test_nothing_is_loaded_and_the_policy_admits_this_script_only(page, text):
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    assert len(re.findall("<script", text)) == 2
    assert not any("src" in a or any(name.startswith("on") for name in a) for _, a in page.elements)
    assert not re.search(r"\beval\b|innerHTML|document\.write|new Function", script)


def test_the_same_files_give_the_same_bytes(folder, text):
    assert build_arena_page(folder).read_text(encoding="utf-8") == text


def test_means_of_the_file_give_the_ranks_of_the_file(folder):
    arena = load_arena(folder)
    for name, pool in arena.pools.items():
        table = rank_methods(leaderboard_means(arena.content, name), "overall").table
        assert table["rank"].reindex(pool["columns"]).round(6).tolist() == pool["boards"]["overall"]["rank"]


def test_the_picker_has_the_ranks_of_the_leaderboard(folder):
    arena = load_arena(folder)
    data, pool = (
        picker_data(arena),
        arena.pools["ensembled"],
    )  # of the pools with all sets, the one with the most methods
    assert [each["name"] for each in data["sets"]] == [name for name, *_ in SETS]
    assert np.mean(data["ranks"], axis=0).round(6).tolist() == pool["boards"]["overall"]["rank"]
    late = np.mean(data["late"], axis=0)
    assert {each["title"] for each, share in zip(data["methods"], late, strict=True) if share} == {"MLDF", "BOOMER"}


def test_ratings_costs_and_tables_may_be_absent(own_folder):
    folder = own_folder
    path = folder / "leaderboard.json.gz"
    content = read_json(path)
    content["costs"] = None
    for key in ("libraries", "chosen_on"):  # as files of before this key are
        for method in content["methods"].values():
            del method[key]
    del content["absent"], content["studies"][0]["tune"]
    for pool in content["pools"]:
        for board in pool["boards"].values():
            for key in ("elo", "elo_low", "elo_high"):
                board.pop(key, None)
    write_content(path, json.dumps(content))
    for name in ("scores.csv.gz", "measured.csv", "unfinished.csv", "study.json"):
        (folder / name).unlink()
    text = build_arena_page(folder).read_text(encoding="utf-8")
    assert "<td>1.29</td>" in text
    assert "Seconds and megabytes were not measured." in text


def test_a_leaderboard_that_cannot_be_used_is_refused_in_one_line(own_folder):
    folder = own_folder
    path = folder / "leaderboard.json.gz"
    scores = folder / "scores.csv.gz"
    write_content(scores, read_content(scores).replace(b"emotions,", b"songs,"))
    with pytest.raises(OutdatedLeaderboardError, match=r"has the dataset songs, .*leaderboard\.json\.gz has not"):
        load_arena(folder)
    outdated = read_json(path)
    outdated["metrics"][0]["name"] = "gone"
    write_content(path, json.dumps(outdated))
    with pytest.raises(OutdatedLeaderboardError, match="has gone, which is not in METRICS: run `multilab arena rank`"):
        load_arena(folder)
    for content, message in (("{", "cannot be read"), ('{"schema": 0}', "not of schema 3"), ('{"schema": 3}', "lacks")):
        write_content(path, content)
        with pytest.raises(ReportError, match=message):
            load_arena(folder)
    path.unlink()
    with pytest.raises(OutdatedLeaderboardError, match="does not exist: run `multilab arena rank`"):
        load_arena(folder)


def test_the_command_and_the_report_of_the_study_write_these_pages(own_folder, monkeypatch, capsys):
    monkeypatch.chdir(own_folder.parent.parent)
    assert main(["arena", "page"]) == main(["arena", "page", "--output", "reports/arena"]) == 0
    assert capsys.readouterr().out.endswith("index.html\n")
    text = (own_folder / "index.html").read_text(encoding="utf-8")
    (own_folder / "study.json").write_text('{"page": "arena", "limits": {"seconds": 9, "gigabytes": 4}}')
    assert study_page(own_folder) == own_folder / "index.html"
    assert (own_folder / "index.html").read_text(encoding="utf-8") == text.replace("60 s or 4 GiB", "9 s or 4 GiB")
    (own_folder / "leaderboard.json.gz").unlink()
    assert study_page(own_folder) == own_folder / "index.html"
    assert "leaderboard.json.gz does not exist: run `multilab arena rank`, then `" in capsys.readouterr().out
    assert main(["arena", "page"]) == 2
    assert "leaderboard.json.gz does not exist" in capsys.readouterr().err


def test_the_page_over_all_studies_has_one_line_for_the_arena(folder, text):
    overview = write_overview(folder.parent).read_text(encoding="utf-8")
    assert re.findall(r'<h2><a href="(.*?)">', overview) == ["arena/index.html"]
    assert "of 9 are not told apart on 7 sets." in overview
    assert "arena-tuned" not in overview


def test_the_figure_of_costs_joins_the_front():
    costs = [CostPoint("a", 0.1, 900), CostPoint("b & c", 1, 1100), CostPoint("d", 5, 1000)]
    figure = cost_figure(costs, "seconds", "Elo", "label")
    assert re.findall(r'class="name"[^>]*>(.*?)</text>', figure) == ["a", "b &amp; c"]
    assert figure.count('class="other"') == 1
    same = cost_figure([CostPoint("a", 1.0, 1000.0)], "seconds", "Elo", "label")
    assert "nan" not in same
    assert "inf" not in same
