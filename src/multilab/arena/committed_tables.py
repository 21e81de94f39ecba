"""The committed tables that a leaderboard is computed from: scores, costs, and descriptions of studies and datasets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.arena import ArenaError, Track, method_costs, track_results, with_base_methods
from multilab.arena.tracks import column_name
from multilab.cells.conf import entrant_names, names, package_names, read_settings_file
from multilab.cells.method import Method, family_of, load_method
from multilab.core import conf_dir, read_json, report_dir
from multilab.core.shell import command
from multilab.experiments.study import load_study
from multilab.statistics.result_files import CELL, SCORES, read_measured, read_scores, read_table, read_unfinished

STUDIES = {
    "default": "arena",
    "tuned": "arena-tuned",
    "ensembled": "arena-stacks",
    "costs": "arena-costs",
    "stack_costs": "arena-stack-costs",
}
"""The study of each track."""

_COSTS = {"costs": "default", "stack_costs": "ensembled"}
"""The tracks that measure what the methods of another track cost; they are not ranked."""

_CELL_COSTS = ("seconds", "megabytes")

LICENCE = "BSD-3-Clause"
"""Licence of this package and of its methods; a test compares it with pyproject.toml."""

_ENVIRONMENT = ("created", "commit", "machine", "python", "blas", "versions")


def read_track(track: str, study: str) -> Track | None:
    """Return the results of the study of a track, ``None`` if it has none yet."""
    folder = report_dir(study)
    if not (folder / SCORES).is_file():
        return None
    stopped = folder / "unfinished.csv"
    columns = ["dataset", "split", "method", "reason"]
    unfinished = read_table(stopped, columns) if stopped.is_file() else None
    # the track has the methods of the study, not their variants
    chosen = _json(folder / "study.json", {}).get("methods") if track == "default" else None
    return track_results(track, read_scores(folder), unfinished, chosen)


def read_tracks(studies: Mapping[str, str]) -> list[Track]:
    """Return the tracks that have results, ``default`` first.

    Raises
    ------
    ArenaError
        If the study of the track ``default`` has no results.
    """
    require_results(studies["default"])
    return [track for name, study in studies.items() if name not in _COSTS and (track := read_track(name, study))]


def results_table(studies: Mapping[str, str] = STUDIES) -> pd.DataFrame:
    """Return all results of the arena as one tidy table, a row per set, split, method and metric.

    Returns
    -------
    DataFrame
        ``set``, ``split``, ``method`` (``mlknn``, of other tracks ``mlknn@tuned``), ``metric``, ``value`` (NaN where
        the metric is undefined); ``seconds`` of the fit with its inputs and of the prediction, and ``megabytes``, the
        peak of memory, of the cell (NaN where not measured). A cell that did not finish has no row.

    Raises
    ------
    ArenaError
        If the study of the track ``default`` has no results.
    """
    tables = []
    for track in read_tracks(studies):
        measured, costs = read_measured(report_dir(studies[track.name])), pd.DataFrame(columns=[*CELL, *_CELL_COSTS])
        if measured is not None:
            seconds = measured[["fit_seconds", "input_seconds", "predict_seconds"]].sum(axis="columns", min_count=1)
            costs = measured[CELL].assign(seconds=seconds, megabytes=measured["peak_mb"].replace(0.0, math.nan))
        rows = track.board.scores.merge(costs, how="left", on=CELL)
        tables.append(rows.assign(method=[column_name(method, track.name) for method in rows["method"]]))
    joined = pd.concat(tables, ignore_index=True).rename(columns={"dataset": "set"})
    names = ["set", "method", "split", "metric"]
    return joined.sort_values(names, ignore_index=True)[["set", "split", "method", "metric", "value", *_CELL_COSTS]]


def require_results(study: str) -> None:
    """Raise an :class:`ArenaError` if a study has no results."""
    path = report_dir(study) / SCORES
    if not path.is_file():
        raise ArenaError(f"{path} is not there; `{command('multilab')} study run --study {study}` computes it")


def tables_of_costs(study: str) -> dict[str, pd.DataFrame | None]:
    """Return the tables ``measured``, ``tuned`` and ``unfinished`` of a study, ``None`` for those it does not have."""
    folder = report_dir(study)
    measured = read_measured(folder)
    tuned = None
    if measured is not None and "tune_seconds" in measured:
        tuned = measured.dropna(subset="tune_seconds")[[*CELL, "tune_seconds"]]
    return {
        "measured": measured,
        "tuned": tuned,
        "unfinished": read_unfinished(folder),
    }


def described_studies(studies: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return title, description and environment of the studies that have results."""
    described = []
    for track, study in studies.items():
        folder = report_dir(study)
        if (folder / SCORES).is_file():
            settings, machine = _json(folder / "study.json", {}), _json(folder / "environment.json", {})
            entry = {
                "track": track,
                "study": study,
                "title": settings.get("title"),
                "description": settings.get("description"),
            }
            described.append(entry | {key: machine.get(key) for key in _ENVIRONMENT} | {"tune": settings.get("tune")})
    return described


def facts_of_sets(studies: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the facts of all datasets of the studies, as the leaderboard file has them."""
    settings = arena_settings()
    domains, related = settings["domains"], settings["related"]
    kinds = {name: domain for domain, members in domains.items() for name in members}
    facts: dict[str, dict[str, Any]] = {}
    for card in _cards(studies):
        name, kind = card["name"], kinds.get(card["name"], "other")
        sources = (
            source for source, patterns in related.items() if any(fnmatchcase(name, pattern) for pattern in patterns)
        )
        facts[name] = {
            "name": name,
            "title": card.get("title") or _title(name),
            "domain": kind,
            "text": kind == "text",
            "source": next(sources, name),
            "n": card["instances"],
            "d": card["columns"],
            "q": card["labels"],
            "cardinality": card["cardinality"],
            "density": card["density"],
            "distinct": card["distinct_label_sets"],
            "nominal": card["nominal_features"],
            "sparse": card["sparse"],
        }
    return list(facts.values())


def digests_of_splits(studies: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """Return the digests of the splits by track and dataset."""
    return {
        track: {card["name"]: card.get("split_digests", []) for card in _json(report_dir(study) / "datasets.json", [])}
        for track, study in studies.items()
    }


def described_methods(tracks: Iterable[Track], studies: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the entries of ``methods`` in the leaderboard file for some tracks, without name and track."""
    method_names, described = set(names("method")), {}
    chosen_on = {name: choice for choice in arena_settings()["chosen_on"] for name in choice["methods"]}
    for track in tracks:
        folder = report_dir(studies[track.name])
        settings, environment = _json(folder / "study.json", {}), _json(folder / "environment.json", {})
        titles, references = settings.get("method_titles", {}), settings.get("references", {})
        for name in track.board.methods:
            method = load_method(name) if name in method_names else None
            method_settings, decided = settings.get("settings", {}).get(name, {}), chosen_on.get(name)
            described[name] = {
                **_described(name, method),
                **({"title": titles[name]} if titles.get(name) else {}),
                **({"reference": references[name]} if references.get(name) else {}),
                "base_scores": list(method_settings.get("base_scores") or (method.base_scores if method else ())),
                "libraries": _libraries(method, environment) if method else {},
                "chosen_on": decided and {key: decided[key] for key in ("sets", "reason")},
            }
    return described


def absent_entrants(tracks: Sequence[Track], studies: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the entrants that have no results in any track, with the reason, as the leaderboard file has them."""
    present = {name for track in tracks for name in track.board.methods}
    ranked = [study for track, study in studies.items() if track not in _COSTS and study in names("study")]
    listed = {study: set(load_study(study).all_methods) for study in ranked}
    absent = []
    for name in sorted(set(entrant_names("method")) - present):
        method = load_method(name)
        waiting = [study for study, methods in listed.items() if name in methods]
        absent.append({"name": name, **_described(name, method), "reason": _reason(method, waiting)})
    return absent


def _reason(method: Method, waiting: Sequence[str]) -> str:
    """Return why an entrant has no results, from its settings and the studies that have it."""
    if waiting:
        return f"in {', '.join(waiting)}, which is not computed yet"
    if "model_path" in method.params and method.params["model_path"] is None:
        return "not run here: weights"
    if method.requires:
        return f"not run here: {', '.join(_packages(method))}"
    return "in no study of the arena"


def _described(name: str, method: Method | None) -> dict[str, Any]:
    """Return what the leaderboard file has of every method, with or without results."""
    return {
        "title": method.title if method else name,
        "family": _display(method, "family") or (family_of(method) if method else None),
        "licence": _display(method, "licence") or (LICENCE if name in package_names("method") else None),
        "requires": _requires(method),
        "reference": _display(method, "reference"),
    }


def _libraries(method: Method, environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the libraries of a method's estimators with the versions of the suite: those recorded, or of the core."""
    versions = environment.get("versions") or {}
    recorded = (environment.get("libraries") or {}).get(method.name, ())
    core = (
        "scikit-learn" if any(target.startswith("sklearn.") for target in _targets(method.identity())) else "multilab"
    )
    used = recorded or ([] if _requires(method) else [core])
    return {name: versions[name] for name in used if name in versions}


def read_costs(studies: Mapping[str, str], methods: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame | None:
    """Return the costs of methods, from the cost studies that have results, else from the track ``default``.

    A stack's predictions and model include those of its base methods: those of the study, or, of a study without a file
    of settings, those of ``methods`` (``base_scores``).
    """
    measured = {track: read_measured(report_dir(studies[track])) for track in ("default", *_COSTS) if track in studies}
    chosen = [track for track in _COSTS if measured.get(track) is not None]
    chosen = chosen if "costs" in chosen else ["default"]
    tables: list[pd.DataFrame] = []
    row_counts: dict[str, tuple[float, float]] = {}
    bases: dict[tuple[str, str], Sequence[str]] = {}
    for track in chosen:
        table, study = measured.get(track), studies[track]
        if table is None:
            return None
        settings = _json(report_dir(study) / "study.json", {})
        rows = {card["name"]: _rows(card, settings) for card in _cards({track: study})}
        row_counts |= {name: counts for name, counts in rows.items() if counts is not None}
        ranked, members = _COSTS.get(track, track), _base_methods(study, methods)
        columns = {name: column_name(name, ranked) for name in table["method"].unique()}
        pairs = table[["dataset", "method"]].drop_duplicates().itertuples(index=False, name=None)
        bases |= {(dataset, columns[name]): members(name, dataset) for dataset, name in pairs}
        tables.append(table.assign(method=table["method"].map(columns)))
    joined = pd.concat(tables, ignore_index=True)
    costs = method_costs(with_base_methods(joined[joined["dataset"].isin(list(row_counts))], bases), row_counts)
    costs.attrs["studies"] = [studies[track] for track in chosen]
    return costs


def _base_methods(study: str, methods: Mapping[str, Mapping[str, Any]]) -> Callable[[str, str], Sequence[str]]:
    """Return the function that gives the base methods of a stack on a dataset in a study."""
    described, method_names = load_study(study) if study in names("study") else None, set(names("method"))

    def members(method: str, dataset: str) -> Sequence[str]:
        if described and described.base(method) in method_names:
            return described.method(method, dataset).base_scores
        return methods.get(method, {}).get("base_scores", ())

    return members


def arena_settings() -> dict[str, Any]:
    """Return ``conf/arena.yaml``."""
    return {
        "domains": {},
        "related": {},
        "anchor": None,
        "tested": None,
        "core_hours": None,
        "chosen_on": [],
        **read_settings_file(conf_dir() / "arena.yaml"),
    }


def _rows(card: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return training and test rows of a split; ``None`` for protocols that do not say."""
    protocol = (settings.get("protocols") or {}).get(card["name"]) or settings.get("protocol") or {}
    if "kfold" in protocol:
        share = 1 - 1 / protocol["kfold"]
    elif "train_size" in (protocol.get("holdout") or {}):
        share = protocol["holdout"]["train_size"]
    else:
        return None
    return card["instances"] * share, card["instances"] * (1 - share)


def _cards(studies: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    return [card for study in studies.values() for card in _json(report_dir(study) / "datasets.json", [])]


def _title(name: str) -> str:
    path = conf_dir() / "dataset" / f"{name}.yaml"
    return str(read_settings_file(path).get("title", name)) if path.is_file() else name


def _display(method: Method | None, key: str) -> Any:
    """Return a display field of a method's YAML, ``None`` where it has none."""
    return getattr(method, key, None) or None


def _requires(method: Method | None) -> list[str]:
    """Return what a method needs in addition to the core: its own list, else the top modules of other libraries."""
    declared = _display(method, "requires")
    if declared:
        return [declared] if isinstance(declared, str) else list(declared)
    return _packages(method) if method else []


def _packages(method: Method) -> list[str]:
    """Return the top modules of other libraries in the settings of a method."""
    tops = {target.partition(".")[0] for target in _targets(method.identity())}
    return sorted(tops - {"multilab", "sklearn", "numpy", "scipy", "hydra"})


def _targets(value: Any, key: str = "") -> list[str]:
    """Return what ``_target_`` and, of a look-up of a class, ``path`` name in some settings."""
    if isinstance(value, Mapping):
        return [target for name, item in value.items() for target in _targets(item, name)]
    if isinstance(value, list | tuple):
        return [target for item in value for target in _targets(item)]
    return [value] if isinstance(value, str) and (key == "_target_" or (key == "path" and "." in value)) else []


def _json(path: Path, absent: Any) -> Any:
    if not path.is_file():
        return absent
    try:
        return read_json(path)
    except ValueError as error:
        raise ArenaError(
            f"{path} is not JSON: {error}; `{command('multilab')} study stats` of its study writes it"
        ) from None
