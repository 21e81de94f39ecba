"""What the page of the arena shows: the leaderboard file, and the tables of its studies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from multilab.arena import SCHEMA, leaderboard_means
from multilab.arena.tracks import UNSEEN
from multilab.core import read_json
from multilab.metrics import METRICS
from multilab.reports.errors import ReportError
from multilab.reports.tables.entry import number
from multilab.statistics import Leaderboard
from multilab.statistics.result_files import SCORES, read_scores

LEADERBOARD, RESULTS = "leaderboard.json.gz", "results.parquet"
_KEYS = ("created", "studies", "sets", "methods", "metrics", "groups", "tracks", "pools", "costs")


class OutdatedLeaderboardError(ReportError):
    """The leaderboard file is missing, or lacks a set or method of the scores."""


@dataclass(frozen=True)
class ArenaColumn:
    """A column of the arena: a method of a track.

    Attributes
    ----------
    name, method : str
        ``mlknn@tuned`` and ``mlknn``.
    title, family, track, licence : str
        A dash where the file has none.
    requires : tuple of str
        Extras or packages that it needs in addition to the core.
    reference : str
    libraries : dict of str to str
        The libraries of its estimator with their versions in the suite; empty where not recorded.
    chosen_on : tuple of str
        Sets whose results decided rules of the method: its rows there are optimistic.
    chosen_reason : str
        Which rules.
    fit_seconds, predict_ms, model_mb, peak_mb : float or None
        Medians: per 1,000 training rows, per row, in 10^6 bytes. ``None`` where not measured.
    """

    name: str
    method: str
    title: str
    family: str
    track: str
    licence: str
    requires: tuple[str, ...]
    reference: str
    libraries: dict[str, str]
    chosen_on: tuple[str, ...]
    chosen_reason: str
    fit_seconds: float | None
    predict_ms: float | None
    model_mb: float | None
    peak_mb: float | None


@dataclass(frozen=True, eq=False)
class ArenaData:
    """Everything that the page of the arena shows.

    Attributes
    ----------
    folder : Path
        ``reports/arena``.
    content : dict
        ``leaderboard.json.gz``, see :mod:`multilab.arena.leaderboard`.
    columns : dict of str to ArenaColumn
        By name, in the order of the file.
    """

    folder: Path
    content: dict[str, Any]
    columns: dict[str, ArenaColumn]

    @cached_property
    def sets(self) -> dict[str, dict[str, Any]]:
        """Facts of the sets by name."""
        return {each["name"]: each for each in self.content["sets"]}

    @cached_property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """Metrics by name."""
        return {each["name"]: each for each in self.content["metrics"]}

    @cached_property
    def groups(self) -> dict[str, dict[str, Any]]:
        """Groups of metrics by name; the first holds all."""
        return {each["name"]: each for each in self.content["groups"]}

    @cached_property
    def pools(self) -> dict[str, dict[str, Any]]:
        """Pools of tracks by name."""
        return {each["name"]: each for each in self.content["pools"]}

    @property
    def tracks(self) -> dict[str, dict[str, Any]]:
        """Tracks by name."""
        return self.content["tracks"]

    @cached_property
    def studies(self) -> dict[str, str]:
        """Name of the study of each track."""
        return {each["track"]: each["study"] for each in self.content["studies"]}

    def title_on(self, column: str, sets: Collection[str]) -> str:
        """Return the display name of a column, with a dagger where one of the sets decided rules of the method."""
        entry = self.columns[column]
        return f"{entry.title} †" if set(entry.chosen_on) & set(sets) else entry.title

    def chosen_notes(self) -> list[str]:
        """Return what the dagger means: per reason its methods and sets."""
        notes: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for each in self.columns.values():
            if each.chosen_on:
                notes.setdefault((each.chosen_reason, each.chosen_on), []).append(each.title)
        return [
            f"{', '.join(titles)}: {reason} These sets: {', '.join(sets)}." for (reason, sets), titles in notes.items()
        ]

    def widest_pool(self, dataset: str) -> dict[str, Any]:
        """Return the pool with the most tracks that has a set."""
        return max(
            (pool for pool in self.pools.values() if dataset in pool["sets"]), key=lambda pool: len(pool["tracks"])
        )

    def set_means(self, dataset: str) -> Leaderboard:
        """Return the means of all columns on one set, over the splits that their tracks have in common."""
        return leaderboard_means(self.content, self.widest_pool(dataset)["name"]).on([dataset])

    def refuse_outdated(self) -> None:
        """Refuse a leaderboard whose sets or methods are not those of the scores of its studies.

        Raises
        ------
        OutdatedLeaderboardError
            Naming the file and the first difference.
        """
        for name, track in self.tracks.items():
            folder = self.folder.parent / self.studies.get(name, name)
            if not (folder / SCORES).is_file():
                continue
            scores = read_scores(folder)
            described = folder / "study.json"
            own = read_json(described).get("methods") if described.is_file() else None
            present = {
                "dataset": set(scores["dataset"]),
                "method": set(scores["method"]) & set(own or scores["method"]),
            }
            known = {"dataset": track["sets"], "method": [self.columns[column].method for column in track["columns"]]}
            for kind, names in present.items():
                if name != "default" and kind == "method":
                    continue  # columns of other tracks may be variants
                if different := sorted(names - set(known[kind])):
                    text = f"{folder / SCORES} has the {kind} {different[0]}, {self.folder / LEADERBOARD} has not"
                    raise OutdatedLeaderboardError(f"{text}: run `multilab arena rank`")


def load_arena(folder: Path | str) -> ArenaData:
    """Return the data of the arena's page.

    Parameters
    ----------
    folder : path
        ``reports/arena`` with ``leaderboard.json.gz``; the tables of the studies that the file names are read from the
        folders next to it, if they are there.

    Raises
    ------
    OutdatedLeaderboardError
        If the file is missing or older than the scores.
    ReportError
        If the file is not JSON or has another schema.
    """
    content = read_leaderboard_file(Path(folder) / LEADERBOARD)
    if not content["pools"]:
        raise ReportError(f"{Path(folder) / LEADERBOARD} has no pool of methods: there is nothing to show")
    arena = ArenaData(Path(folder), content, _columns(content))
    arena.refuse_outdated()
    return arena


def read_leaderboard_file(path: Path) -> dict[str, Any]:
    """Return the content of ``leaderboard.json.gz``.

    Raises
    ------
    OutdatedLeaderboardError
        If the file is missing.
    ReportError
        If the file is not JSON or has another schema.
    """
    try:
        content = read_json(path)
    except FileNotFoundError as error:
        raise OutdatedLeaderboardError(f"{path} does not exist: run `multilab arena rank`") from error
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}; `multilab arena rank` writes it again") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise ReportError(f"{path} is not of schema {SCHEMA}; `multilab arena rank` writes it again")
    for key in _KEYS:
        if key not in content:
            raise ReportError(f"{path} lacks {key!r}; `multilab arena rank` writes it again")
    if unknown := [each["name"] for each in content["metrics"] if each["name"] not in METRICS]:
        raise OutdatedLeaderboardError(f"{path} has {unknown[0]}, which is not in METRICS: run `multilab arena rank`")
    return content


def _columns(content: Mapping[str, Any]) -> dict[str, ArenaColumn]:
    costs = content["costs"] or {"columns": []}
    position = {name: index for index, name in enumerate(costs["columns"])}

    def cost(column: str, name: str) -> float | None:
        return costs[name][position[column]] if column in position else None

    return {
        column: ArenaColumn(
            name=column,
            method=each["name"],
            title=_title(each),
            family=each.get("family") or "–",
            track=each["track"],
            licence=each.get("licence") or "–",
            requires=tuple(each.get("requires") or ()),
            reference=each.get("reference") or "",
            libraries=each.get("libraries") or {},
            chosen_on=tuple((each.get("chosen_on") or {}).get("sets", ())),
            chosen_reason=(each.get("chosen_on") or {}).get("reason", ""),
            **{name: cost(column, name) for name in ("fit_seconds", "predict_ms", "model_mb", "peak_mb")},
        )
        for column, each in content["methods"].items()
    }


def _title(method: Mapping[str, Any]) -> str:
    title = method.get("title") or method["name"]
    return title if method["track"] == "default" else f"{title} ({method['track']})"


POOL_TITLES = {
    "default": "Default settings",
    "tuned": "Default and tuned",
    "ensembled": "Default and ensembled",
    "all": "All tracks",
}


def shown_column(arena: ArenaData, name: str, sets: Collection[str] = ()) -> dict[str, Any]:
    """Return a column as the tables show it; some sets may have decided its rules."""
    column = arena.columns[name]
    return {
        "name": column.name,
        "title": arena.title_on(name, sets),
        "family": column.family,
        "track": column.track,
        "licence": column.licence,
        "costs": [
            {"text": number(value, 2), "value": "" if value is None else f"{value:g}"}
            for value in (column.fit_seconds, column.predict_ms, column.model_mb)
        ],
    }


def pool_title(name: str) -> str:
    """Return the display name of a pool."""
    title = POOL_TITLES.get(name.removesuffix(UNSEEN), name)
    return f"{title}, unseen sets" if name.endswith(UNSEEN) else title


def percent(share: float) -> str:
    """Return a share in per cent, a dash for NaN."""
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def limits_text(arena: ArenaData) -> str:
    """Return the limits of a cell."""
    path = arena.folder / "study.json"
    limits = read_json(path).get("limits") if path.is_file() else None
    return f"{limits['seconds']:g} s or {limits['gigabytes']:g} GiB" if limits else "the limit of time or memory"
