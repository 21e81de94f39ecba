"""Pages of the arena: ``index.html`` over all sets, and ``sets/<set>.html``, each one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena import rank_methods
from multilab.core import write_atomically
from multilab.reports.arena.data import LEADERBOARD, ArenaColumn, ArenaData, load_arena
from multilab.reports.arena.figures import CostPoint, RankPoint, cost_figure, rank_ladder
from multilab.reports.arena.finding import arena_finding, leader, main_pool, rated, set_finding
from multilab.reports.page import template
from multilab.reports.tables.entry import number, p_text

__all__ = ["build_arena_pages", "picker_data"]

_POOLS = {
    "default": "Default settings",
    "tuned": "Default and tuned",
    "ensembled": "Default and ensembled",
    "all": "All tracks",
}
_ELO = ["elo_low", "elo", "elo_high"]
_NUMBERS = (*_ELO, "rank", "win_rate", "improvability")
_SECONDS = (0.01, 0.1, 1, 10, 100)
_FILES = (LEADERBOARD, "scores.csv", "measured.csv", "unfinished.csv")
_SET_COUNTS = (1, 3, 5, 8, 12)
_DEFAULT_SETS = 5
_COSTS = {"fit_seconds": "seconds to fit 1,000 rows", "model_mb": "size of the model, MB"}


def build_arena_pages(folder: Path | str, step: Callable[[str], None] = lambda name: None) -> list[Path]:
    """Write the pages of the arena and return their paths, ``index.html`` first.

    Parameters
    ----------
    folder : path
        ``reports/arena`` with ``leaderboard.json``. Spreads and seconds of a set are read from ``scores.csv`` and
        ``measured.csv`` of the studies, and the limits of a cell from ``study.json``, where these are there.
    step : callable, optional
        Called with the name of each page before it is written.

    Returns
    -------
    list of Path
        Pages that load nothing; the same files give the same bytes. Pages of sets that are no longer in the file are
        removed.

    Raises
    ------
    ReportError
        If ``leaderboard.json`` is missing or of another schema, or the extra ``lab`` is not installed.
    """
    arena = load_arena(folder)
    script = (Path(__file__).parent / "arena.js").read_text(encoding="utf-8")
    common = _common(arena, script)
    target = arena.folder / "index.html"
    step("index")
    write_atomically(target, template("arena.html.j2", common).render(_index(arena)))
    written, names = [target], list(arena.sets)
    page = template("arena_set.html.j2", common)
    for index, name in enumerate(names):
        step(name)
        path = arena.folder / "sets" / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        neighbours = {
            "previous": names[index - 1] if index else "",
            "following": names[index + 1] if index + 1 < len(names) else "",
        }
        write_atomically(path, page.render(_set_page(arena, name) | neighbours))
        written.append(path)
    for path in sorted((arena.folder / "sets").glob("*.html")):
        if path not in written:
            path.unlink()
    return written


def _common(arena: ArenaData, script: str) -> dict[str, Any]:
    """Return what all pages show: the script with its digest for the policy of the page, and choices of the filters."""
    text = f"\n{script}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    columns = arena.columns.values()
    options = {
        "families": sorted({column.family for column in columns}),
        "tracks": list(dict.fromkeys(column.track for column in columns)),
        "licences": sorted({column.licence for column in columns}),
        "seconds": _SECONDS,
    }
    return {"script": text, "script_hash": f"sha256-{digest}", "options": options}


def _index(arena: ArenaData) -> dict[str, Any]:
    pools, groups = arena.pools, arena.groups
    boards = [_board(arena, pool, group) for pool in pools.values() for group in groups if group in pool["boards"]]
    costs = [_cost_panel(arena, pool, group) for pool in pools.values() for group in groups if group in pool["boards"]]
    data = json.dumps(picker_data(arena), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return {
        "finding": arena_finding(arena),
        "facts": _facts(arena),
        "origin": _origin(arena),
        "scale": _scale(arena),
        "alike": [each["title"] for each in arena.metrics.values() if each["ordered_like"]],
        "group_metrics": [
            (group["title"], [arena.metrics[name]["title"] for name in group["metrics"]])
            for group in list(groups.values())[1:]
        ],
        "limits": _limits(arena),
        "files": [
            LEADERBOARD,
            *(f for f in ("scores.csv", "measured.csv", "unfinished.csv") if (arena.folder / f).is_file()),
        ],
        "main": main_pool(arena)["name"],
        "tracks": [(name, _POOLS.get(name, name)) for name in pools],
        "groups": [(name, group["title"]) for name, group in groups.items()],
        "single_metrics": [(each["name"], each["title"]) for each in _counted(arena)],
        "boards": boards,
        "champions": [_champion(arena, pool) for pool in pools.values() if pool["champion"]][-1:],
        "costs": [panel for panel in costs if panel["figures"]],
        "measured": arena.content["costs"],
        "sets": list(arena.sets.values()),
        "set_rows": [_set_row(arena, name) for name in arena.sets],
        "set_counts": [count for count in _SET_COUNTS if count <= max(len(arena.sets), 1)],
        "default_sets": max(count for count in _SET_COUNTS if count <= min(_DEFAULT_SETS, max(len(arena.sets), 1))),
        "method_rows": [_method_row(arena, column) for column in arena.columns.values()],
        "commands": _commands(arena),
        "data": data,
    }


def _facts(arena: ArenaData) -> list[tuple[str, str]]:
    cells = sum(sum(track["splits"].values()) * len(track["columns"]) for track in arena.tracks.values())
    missing = sum(each["splits"] for track in arena.tracks.values() for each in track["unfinished"])
    values = [
        ("data sets", len(arena.sets)),
        ("methods, by track", len(arena.columns)),
        ("metrics", len(arena.metrics)),
        ("cells (set, split, method)", cells),
        ("scores (cell, metric)", (cells - missing) * len(arena.metrics)),
    ]
    facts = [(name, _count(value)) for name, value in values]
    return [*facts, ("cells unfinished", f"{100 * missing / cells:.1f} %" if cells else "–")]


def _count(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f")


def _origin(arena: ArenaData) -> str:
    study = arena.content["studies"][0] if arena.content["studies"] else {}
    parts = [f"Suite of {arena.content['created'] or 'unknown date'}"]
    parts += [f"{study[key]}" for key in ("machine",) if study.get(key)]
    parts += [f"Python {study['python']}"] if study.get("python") else []
    parts += [f"commit {study['commit']}"] if study.get("commit") else []
    return "; ".join(parts) + "."


def _limits(arena: ArenaData) -> str:
    path = arena.folder / "study.json"
    limits = json.loads(path.read_text(encoding="utf-8")).get("limits") if path.is_file() else None
    return f"{limits['seconds']:g} s or {limits['gigabytes']:g} GiB" if limits else "the limit of time or memory"


def _scale(arena: ArenaData) -> str:
    anchor = main_pool(arena).get("anchor")
    return f"{arena.columns[anchor].title} has 1000" if anchor else "the mean of all methods is 1000"


def _board(arena: ArenaData, pool: Mapping[str, Any], group: str) -> dict[str, Any]:
    board, first = pool["boards"][group], leader(pool, group)
    table = pd.DataFrame({key: board.get(key) for key in _NUMBERS}, index=pool["columns"], dtype=float)
    table["unfinished"] = pool["unfinished"]
    table = table.sort_values(
        ["elo", "rank"] if rated(board) else "rank", ascending=[False, True] if rated(board) else True
    )
    low, high = table[_ELO].min().min(), table[_ELO].max().max()
    limit = table["rank"].min() + (-1.0 if board["cd"] is None else board["cd"])
    points = [RankPoint(arena.columns[name].title, rank) for name, rank in table["rank"].items()]
    title = _title(arena, pool, group)
    best = ", ".join(f"{point.title} {point.mean_rank:.2f}" for point in sorted(points, key=lambda p: p.mean_rank)[:10])
    return {
        "track": pool["name"],
        "group": group,
        "title": title,
        "note": _board_note(arena, pool, group),
        "rows": [
            _interval(row, low, high - low)
            | {
                "method": _shown(arena.columns[name]),
                "first": name == first,
                "mean_rank": f"{row['rank']:.2f}",
                "mean_rank_value": f"{row['rank']:g}",
                "same": row["rank"] <= limit,
                "win_rate": _percent(row["win_rate"]),
                "improvability": _percent(row["improvability"]),
                "unfinished": _percent(row["unfinished"]),
                "late": row["unfinished"] > 0,
            }
            for name, row in table.iterrows()
        ],
        "diagram": rank_ladder(points, board["cd"], f"Mean ranks, {title}: {best}") if board["cd"] else "",
        "cd_note": f"CD = {board['cd']:.2f} ranks, {board['sets']} sets" if board["cd"] else "",
    }


def _interval(row: pd.Series, low: float, span: float) -> dict[str, str]:
    """Return Elo and its interval as text, and where the bar of the interval begins and ends, in per cent."""
    if np.isnan(row["elo"]):
        return dict.fromkeys(("elo_value", "interval", "left", "width", "middle"), "") | {"elo": "–"}
    ends = (row["elo_low"], row["elo_high"])
    left, right = (row["elo"] if np.isnan(end) else end for end in ends)

    def share(value: float) -> str:
        return f"{100 * value / span if span else 0.0:.1f}".removesuffix(".0")

    return {
        "elo": f"{row['elo']:.0f}",
        "elo_value": f"{row['elo']:g}",
        "interval": "" if np.isnan(ends[0]) else f"{left:.0f}–{right:.0f}",
        "left": share(left - low),
        "width": share(right - left),
        "middle": share(row["elo"] - low),
    }


def _title(arena: ArenaData, pool: Mapping[str, Any], group: str) -> str:
    return f"{_POOLS.get(pool['name'], pool['name'])} · {arena.groups[group]['title']}"


def _board_note(arena: ArenaData, pool: Mapping[str, Any], group: str) -> str:
    board = pool["boards"][group]
    text = f"{len(pool['columns'])} methods, {board['sets']} sets, {len(arena.groups[group]['metrics'])} metrics."
    if board["left_out"]:
        text += f" Not defined on {', '.join(board['left_out'])}."
    if pool["other_splits"]:
        text += f" The tracks split {', '.join(pool['other_splits'])} differently."
    if board["p"] is not None:
        differ = "differ" if board["p"] < 0.05 else "are not shown to differ"
        text += f" Taken together, the methods {differ} (Iman–Davenport, {p_text(board['p'])})."
    return text


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def _shown(column: ArenaColumn) -> dict[str, Any]:
    """Return a column as the tables show it."""
    return {
        "name": column.name,
        "title": column.title,
        "family": column.family,
        "track": column.track,
        "licence": column.licence,
        "costs": [
            {"text": number(value, 2), "value": "" if value is None else f"{value:g}"}
            for value in (column.fit_seconds, column.predict_ms, column.model_mb)
        ],
    }


def _champion(arena: ArenaData, pool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Bayesian tests of one column against every other one, a line per metric."""
    champion = pool["champion"]
    rows = [
        {
            "metric": arena.metrics[name]["title"],
            "first": test["first"],
            "better": test["surely_better"],
            "not_worse": test["surely_not_worse"],
            "others": len(pool["columns"]) - 1,
        }
        for name, test in champion["tests"].items()
    ]
    return {
        "title": arena.columns[champion["column"]].title,
        "pool": _POOLS.get(pool["name"], pool["name"]),
        "rope": f"{champion['rope']:g}",
        "rows": rows,
        "first": sum(row["first"] for row in rows),
    }


def _cost_panel(arena: ArenaData, pool: Mapping[str, Any], group: str) -> dict[str, Any]:
    board, title = pool["boards"][group], _title(arena, pool, group)
    if rated(board):
        name, values = "Elo", board["elo"]
    else:
        name, values = "Win rate, %", [100 * share for share in board["win_rate"]]
    figures = []
    for cost, unit in _COSTS.items():
        points = [
            CostPoint(arena.columns[column].title, amount, quality)
            for column, quality in zip(pool["columns"], values, strict=True)
            if (amount := getattr(arena.columns[column], cost)) and quality is not None
        ]
        if points:
            text = f"{name} against {unit}"
            svg = cost_figure(points, f"{unit} (logarithmic)", name, f"{text}, {title}")
            figures.append({"title": text, "svg": svg, "caption": f"{text}, {len(points)} methods."})
    return {"track": pool["name"], "group": group, "title": title, "figures": figures}


def _set_row(arena: ArenaData, name: str) -> dict[str, Any]:
    facts, means = arena.sets[name], arena.track_means(name)
    table = rank_methods(means, next(iter(arena.groups))).table
    return {
        "name": name,
        "best": arena.columns[table.index[0]].title,
        "numbers": [
            *((_count(facts[key]), f"{facts[key]}") for key in ("n", "d", "q")),
            *((f"{facts[key]:.3f}", f"{facts[key]}") for key in ("cardinality", "density")),
        ],
        "text": "yes" if facts["text"] else "no",
        "methods": len(means.columns),
        "unfinished": int(means.unfinished.sum()),
    }


def _method_row(arena: ArenaData, column: ArenaColumn) -> dict[str, Any]:
    track = arena.tracks[column.track]
    missing = sum(each["splits"] for each in track["unfinished"] if each["column"] == column.name)
    needs = f"Needs {', '.join(column.requires)}. " if column.requires else ""
    return {
        "method": _shown(column) | {"name": column.method},
        "sets": len(track["sets"]),
        "unfinished": missing,
        "remarks": f"{needs}{column.reference}".strip() or "–",
    }


def _commands(arena: ArenaData) -> list[str]:
    studies = list(dict.fromkeys(arena.studies.values()))
    return [*(f"dvc repro reports/{study}/dvc.yaml" for study in studies), "multilab arena rank", "multilab arena page"]


def _counted(arena: ArenaData) -> list[dict[str, Any]]:
    return [each for each in arena.metrics.values() if not each["ordered_like"]]


def picker_data(arena: ArenaData) -> dict[str, Any]:
    """Return what the script of the page reads: sets, columns, metrics, pools, and means as integers of 10^-6.

    ``means`` is indexed by set, metric and column; ``pools`` hold the positions of their columns and sets, the
    metrics that are undefined on a set, and their own means on sets of which they average fewer splits.
    """
    sets, columns = list(arena.sets), list(arena.columns)
    metrics = [each["name"] for each in _counted(arena)]
    pools, means = {}, np.full((len(sets), len(metrics), len(columns)), np.nan)
    for track in arena.tracks.values():
        for i, name in enumerate(sets):
            if name in track["sets"]:
                for j, metric in enumerate(metrics):
                    row = track["values"].get(metric, [[None] * len(track["columns"])] * len(sets))
                    at = [columns.index(column) for column in track["columns"]]
                    means[i, j, at] = np.array(row[track["sets"].index(name)], dtype=float)
    for name, pool in arena.pools.items():
        own = arena.pool_means(name)
        fewer = sorted({dataset for track in pool["values"].values() for rows in track.values() for dataset in rows})
        used = [metric for metric in metrics if metric in own.metrics]
        pools[name] = {
            "columns": [columns.index(column) for column in own.columns],
            "sets": [sets.index(dataset) for dataset in own.datasets],
            "metrics": [metrics.index(metric) for metric in used],
            "undefined": {
                sets.index(dataset): absent
                for i, dataset in enumerate(own.datasets)
                if (absent := [metrics.index(m) for m in used if own.undefined[own.metrics.index(m), i]])
            },
            "own": {
                sets.index(dataset): {
                    metrics.index(m): _integers(own.values[own.metrics.index(m), own.datasets.index(dataset)])
                    for m in used
                }
                for dataset in fewer
            },
        }
    return {
        "sets": [
            {
                "name": name,
                "rows": profile.rows,
                "features": profile.features,
                "labels": profile.labels,
                "cardinality": profile.cardinality,
                "density": profile.density,
                "text": profile.text,
            }
            for name, profile in arena.profiles.items()
        ],
        "methods": [_shown(column) for column in arena.columns.values()],
        "metrics": [{key: arena.metrics[name][key] for key in ("name", "title", "direction")} for name in metrics],
        "groups": {
            **{name: [metrics.index(m) for m in group["metrics"]] for name, group in arena.groups.items()},
            **{name: [index] for index, name in enumerate(metrics)},
        },
        "pools": pools,
        "means": [[_integers(row) for row in table] for table in means],
    }


def _integers(values: np.ndarray) -> list[int | None]:
    return [None if math.isnan(value) else round(1e6 * value) for value in values]


def _set_page(arena: ArenaData, name: str) -> dict[str, Any]:
    facts, means = arena.sets[name], arena.track_means(name)
    metrics = [arena.metrics[metric] for metric in means.metrics]
    table = rank_methods(means, next(iter(arena.groups))).table
    reasons = {
        each["column"]: f"{each['splits']} of {track['splits'][name]} splits: {each['reason']}"
        for track in arena.tracks.values()
        for each in track["unfinished"]
        if each["set"] == name
    }
    best = [
        None if np.isnan(row).all() else (np.nanmax(row) if metric["direction"] == "max" else np.nanmin(row))
        for metric, row in zip(metrics, means.values[:, 0], strict=True)
    ]
    spreads, seconds = arena.spreads, arena.seconds
    rows = []
    for column in table.index:
        at = means.columns.index(column)
        entries = []
        for metric, row, top in zip(metrics, means.values[:, 0], best, strict=True):
            value, spread = row[at], spreads.get((name, column, metric["name"]), math.nan)
            entries.append(
                {
                    "text": "–" if math.isnan(value) else f"{value:.4f}",
                    "value": "" if math.isnan(value) else f"{value:g}",
                    "std": "" if math.isnan(value) or math.isnan(spread) else f"{spread:.4f}",
                    "best": top is not None and value == top,
                }
            )
        took = seconds.get((name, column), math.nan)
        rows.append(
            {
                "method": _shown(arena.columns[column]),
                "rank": f"{table.loc[column, 'rank']:g}",
                "entries": entries,
                "seconds": number(took, 2),
                "seconds_value": "" if math.isnan(took) else f"{took:g}",
                "reason": reasons.get(column, ""),
            }
        )
    splits = {track["splits"][name] for track in arena.tracks.values() if name in track["splits"]}
    return {
        "item": facts | {"title": facts.get("title") or name},
        "finding": set_finding(arena, name),
        "facts": [
            ("rows (n)", _count(facts["n"])),
            ("features (d)", _count(facts["d"])),
            ("labels (q)", _count(facts["q"])),
            ("labels per row", f"{facts['cardinality']:.3f}"),
            ("density", f"{facts['density']:.3f}"),
            ("domain", facts.get("domain") or "–"),
            ("splits", ", ".join(str(count) for count in sorted(splits))),
        ],
        "card": f"../../../conf/dataset/{name}.yaml",
        "metrics": metrics,
        "rows": rows,
        "limits": _limits(arena),
    }
