"""The commands of the arena: leaderboards, summary and portfolios of stacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multilab import arena
from multilab.arena import ArenaError, Board, Pool, Track
from multilab.arena.boards import ALPHA, GROUP_TITLES, METRIC_GROUPS
from multilab.arena.committed_tables import (
    STUDIES,
    absent_entrants,
    arena_settings,
    described_methods,
    described_studies,
    digests_of_splits,
    facts_of_sets,
    read_costs,
    read_tracks,
    require_results,
    results_table,
    tables_of_costs,
)
from multilab.arena.portfolio import chosen_members, stack_study, study_portfolios
from multilab.arena.sets import sources_of
from multilab.arena.summary import PROPOSALS, arena_summary
from multilab.arena.tracks import all_pools
from multilab.cells.conf import names
from multilab.cells.execute import jobs, parallel_map
from multilab.cells.progress import ProgressBar
from multilab.core import report_dir, write_atomically, write_content
from multilab.core.messages import pip_install, unknown_name
from multilab.core.shell import command
from multilab.experiments.study import Study, load_study
from multilab.metrics import METRICS
from multilab.reports.arena.data import LEADERBOARD, RESULTS, read_leaderboard_file
from multilab.reports.arena.page import summary_page
from multilab.reports.tables.entry import Entry
from multilab.reports.tables.results import ResultTable, print_result_table
from multilab.statistics import Leaderboard


@dataclass(frozen=True, eq=False)
class _Suite:
    """Tables of some studies, and the columns with a part of their own."""

    studies: dict[str, str]
    tracks: list[Track]
    facts: list[dict[str, Any]]
    digests: dict[str, dict[str, list[str]]]
    methods: dict[str, dict[str, Any]]
    anchor: str | None
    tested: str | None

    @classmethod
    def read(cls, options: Mapping[str, str]) -> _Suite:
        studies = {track: options.get(track, study) for track, study in STUDIES.items()}
        for track, study in studies.items():
            if track in options:
                require_results(study)
        tracks, chosen = read_tracks(studies), arena_settings() | dict(options)
        columns = [column for track in tracks for column in track.columns]
        for key in {"anchor", "tested"} & set(options):
            if options[key] not in columns:
                raise ArenaError(unknown_name(f"column for --{key}", options[key], columns))
        facts, digests = facts_of_sets(studies), digests_of_splits(studies)
        methods = described_methods(tracks, studies)
        return cls(studies, tracks, facts, digests, methods, chosen["anchor"], chosen["tested"])


def rank(options: Mapping[str, str], top: int | None = None, output: str | None = None) -> None:
    """Print a leaderboard; without options that choose one, write the file of all first.

    Parameters
    ----------
    options : mapping
        What chooses a leaderboard (``metric``, ``sets``, ``pool``), the studies of the tracks by their names, and the
        methods ``anchor`` and ``tested``; only what is given.
    top : int, optional
        Rows to print.
    output : str, optional
        Folder of the file of all leaderboards.
    """
    view = sorted({"metric", "sets", "pool"} & set(options))
    if view and output:
        raise ArenaError(f"--output is the folder of the file of all leaderboards; with --{view[0]} nothing is written")
    suite = _Suite.read(options)
    pools = {pool.name: pool for pool in all_pools(suite.tracks, suite.methods, suite.digests, suite.tested)}
    name = options.get("pool", _widest(list(pools.values())))
    if name not in pools:
        raise ArenaError(unknown_name("pool", name, pools))
    if not view:
        _write(suite, output)
    pool = pools[name]
    means = pool.means
    if "sets" in options:
        known = [each for each in suite.facts if each["name"] in means.datasets]
        means = means.on(arena.select_sets(known, options["sets"]))
    anchor = suite.anchor if suite.anchor in means.methods else None
    seen = {
        column: (suite.methods[method].get("chosen_on") or {}).get("sets", ())
        for track in suite.tracks
        for column, method in zip(track.columns, track.board.methods, strict=True)
    }
    for metric in options.get("metric", "overall").split(","):
        board = arena.rank_methods(means, metric, _rating(), anchor, sources_of(suite.facts))
        print_result_table(_table(board, means, pool, top, options.get("sets"), seen))


def _write(suite: _Suite, out: str | None) -> None:
    """Write the file of all leaderboards, and the table of all results."""
    if suite.studies != STUDIES and out is None:
        raise ArenaError(
            "other studies would replace the leaderboard of the arena: add --output FOLDER, or --metric to print"
        )
    described = {each["name"] for each in suite.facts}
    for track in suite.tracks:
        if absent := [each for each in track.board.datasets if each not in described]:
            advice = (
                f"`{command('multilab')} study stats --study {suite.studies[track.name]}` writes them to datasets.json"
            )
            raise ArenaError(f"there are no facts of {', '.join(absent)}: {advice}")
    content = arena.arena_leaderboard(
        suite.tracks,
        suite.facts,
        suite.methods,
        described_studies(suite.studies),
        suite.digests,
        read_costs(suite.studies, suite.methods),
        _rating(required=True),
        suite.anchor,
        suite.tested,
        _in_parallel,
        absent_entrants(suite.tracks, suite.studies),
    )
    path = Path(out or report_dir("arena")) / LEADERBOARD
    write_content(path, arena.leaderboard_text(content))
    print(f"wrote {path}: {_extent(content)}")
    write_results_table(path.parent / RESULTS, suite.studies)


def write_results_table(path: Path, studies: Mapping[str, str] = STUDIES) -> None:
    """Write all results of the tracks as one Parquet file: the same bytes with the same version of pyarrow."""
    from pyarrow import BufferOutputStream, Table
    from pyarrow.parquet import write_table

    table = Table.from_pandas(results_table(studies), preserve_index=False)
    stream = BufferOutputStream()
    write_table(table.replace_schema_metadata(None), stream, compression="zstd", compression_level=9)
    write_atomically(path, stream.getvalue().to_pybytes())
    print(f"wrote {path}: {table.num_rows} rows")


def _widest(pools: Sequence[Pool]) -> str:
    """Return the name of the pool with the most sets, of equal ones of that with the most columns."""
    return max(pools, key=lambda pool: (len(pool.means.datasets), len(pool.means.methods))).name


def _rating(required: bool = False) -> Any:
    """Return the function that rates methods; where bencheval is not installed ``None``, unless it is required."""
    try:
        from multilab.arena.elo import elo_ratings

        return elo_ratings
    except ModuleNotFoundError as error:
        if required:
            raise ArenaError(f"Elo needs {error.name}: {pip_install('bencheval')}") from None
        return None


def _in_parallel(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run some items at a time in parallel, with a progress bar."""
    step = max(8 * jobs(), 1)
    chunks = [items[first : first + step] for first in range(0, len(items), step)]
    return [
        result for chunk in ProgressBar("boards and tests")(chunks, len(chunks)) for result in parallel_map(work, chunk)
    ]


def _extent(content: dict[str, Any]) -> str:
    tracks = ", ".join(
        f"{name} {len(track['sets'])} sets x {len(track['columns'])} methods"
        for name, track in content["tracks"].items()
    )
    return f"{tracks}; {len(content['metrics'])} metrics"


def _table(
    board: Board,
    means: Leaderboard,
    pool: Pool,
    top: int | None,
    wanted: str | None,
    seen: Mapping[str, Collection[str]],
) -> ResultTable:
    """Return a board as a table to print: position, method, Elo, rank, rates, and of a single metric its mean.

    Without ``bencheval`` there is no column of Elo.
    A dagger marks columns that have sets among these whose results decided rules of the method.
    """
    decided = {column: [name for name in board.datasets if name in seen[column]] for column in means.methods}
    shown = board.table.head(top) if top else board.table
    single, rated = board.name in METRICS, "elo" in board.table
    average = means.means(board.name).mean(skipna=False) if single else None
    rows = []
    for position, (column, row) in enumerate(shown.iterrows(), 1):
        elo = [f"{row['elo']:.0f}"] if rated else []
        if rated and not np.isnan(row["elo_low"]):
            elo = [f"{row['elo']:.0f} [{row['elo_low']:.0f}, {row['elo_high']:.0f}]"]
        entries = [
            str(position),
            f"{column} †" if decided[column] else str(column),
            *elo,
            f"{row['rank']:.2f}",
            f"{row['win_rate']:.0%}",
            f"{row['improvability']:.1%}",
        ]
        if average is not None:
            entries.append("–" if np.isnan(average[column]) else f"{average[column]:.4f}")
        entries.append(f"{row['unfinished']:.0%}" if row["unfinished"] else "")
        rows.append(tuple(Entry(text) for text in entries))
    heads = [
        "",
        "method",
        *(["Elo"] if rated else []),
        "rank",
        "wins",
        "improvable",
        *([board.name] if single else []),
        "unfinished",
    ]
    directions = [
        "",
        "",
        *(["max"] if rated else []),
        "min",
        "max",
        "min",
        *([METRICS[board.name].direction] if single else []),
        "",
    ]
    title = METRICS[board.name].title if single else GROUP_TITLES[board.name]
    chosen = f" ({wanted})" if wanted else ""
    sets = f"{len(board.datasets)} set{'s' * (len(board.datasets) != 1)}{chosen}"
    head = f"{title}, {sets}, {len(means.methods)} methods ({' + '.join(pool.tracks)})"
    notes = _notes(board, pool, len(shown))
    if marked := sorted({name for column in shown.index for name in decided[column]}, key=board.datasets.index):
        notes.append(f"† optimistic: results on {', '.join(marked)} decided rules of the method")
    return ResultTable(head, tuple(heads), tuple(directions), tuple(rows), tuple(notes))


def _notes(board: Board, pool: Pool, shown: int) -> list[str]:
    notes = []
    if board.cd is not None and board.tests.p is not None:
        level = next((group for group in board.groups if board.table.index[0] in group), ())
        notes.append(
            f"critical difference of ranks {board.cd:.2f} (Nemenyi, level {ALPHA:g}): "
            f"{f'the first {len(level)} methods do not differ by it' if level else 'the first differs from all others'}"
        )
        notes.append(f"Friedman p = {board.tests.p:.2g}")
    if "elo" not in board.table:
        notes.append(f"Elo needs bencheval: {pip_install('bencheval')}")
    if board.left_out:
        notes.append(f"undefined, so left out: {', '.join(board.left_out)}")
    if pool.other_splits:
        notes.append(f"not split alike in all tracks: {', '.join(pool.other_splits)}")
    if board.name in METRIC_GROUPS:
        notes.append(f"on each set by the mean rank over {len(board.metrics)} metrics")
    if board.table["unfinished"].any():
        notes.append("a method that did not finish a set is last there, in wins and Elo, too")
    if shown < len(board.table):
        notes.append(f"{len(board.table) - shown} methods more")
    return notes


PAGE = "docs/arena-results.md"


def summarise_arena() -> None:
    """Write ``reports/arena/summary.json`` and the page of the documentation."""
    summary = summary_of_reports()
    if summary is None:
        raise ArenaError(
            f"there is no {report_dir('arena') / LEADERBOARD}; `{command('multilab')} arena rank` writes it"
        )
    path = report_dir("arena") / "summary.json"
    write_atomically(path, json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print(path)
    page = Path(PAGE)
    if page.parent.is_dir():
        write_atomically(page, summary_page(summary))
        print(page)
    else:
        print(f"{page} is not written: there is no folder {page.parent}")


def summary_of_reports() -> dict[str, Any] | None:
    """Return the summary of the committed files, ``None`` without a leaderboard."""
    folder = report_dir("arena")
    path = folder / LEADERBOARD
    if not path.is_file():
        return None
    content = read_leaderboard_file(path)
    studies = set(names("study"))
    tables = {study: tables_of_costs(study) for study in STUDIES.values()}
    return arena_summary(
        content,
        tables[STUDIES["default"]]["measured"],
        {study: load_study(study).methods for study in PROPOSALS if study in studies},
        tables,
        arena_settings()["core_hours"],
    )


def choose(study: Study, k: int, seconds: float, path: Path) -> None:
    """Print the portfolio of each data set and write the study of the stacks to ``conf/study/arena-stacks.yaml``."""
    members = kept = chosen_members(path)
    for portfolio in study_portfolios(study, k, seconds):
        if portfolio.dataset in kept:
            print(f"{portfolio.dataset}: kept, {', '.join(kept[portfolio.dataset])}")
        else:
            members = members | {portfolio.dataset: portfolio.methods}
            print(f"{portfolio.dataset}: {', '.join(portfolio.methods)}  ({portfolio.seconds:.3g} s)")
    write_atomically(path, stack_study(study, members).encode())
    print(f"{path}; `{command('multilab')} store add --study {path.stem}` fits the stacks")
