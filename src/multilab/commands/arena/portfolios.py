"""Portfolios of the stacks, from committed results, and the study that runs them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from multilab.arena.errors import ArenaError
from multilab.arena.portfolio import StackPortfolio, choose_portfolio
from multilab.commands.arena.tables import arena_settings
from multilab.core import report_dir, write_atomically
from multilab.core.shell import command
from multilab.experiments.conf import read_settings, read_settings_file
from multilab.experiments.study import Study
from multilab.statistics.result_files import read_scores, read_table, read_unfinished

STACKS = ("stack", "stack_greedy", "stack_mlwse", "stack_one_decision")
"""Entrants that get the portfolio of a data set as their base methods."""

DISTILLED = "distilled_stack"
"""The compact method that a stack teaches: a column of the same study, with members of its own."""

_HEADER = """\
# Written by `multilab arena portfolio`: the portfolio of a set is chosen from the results on other sets.
# A set keeps its portfolio when others join; remove its block to choose it again.
"""


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


def chosen_members(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the portfolios that a study of stacks has, by data set; none where there is no such file."""
    if not path.is_file():
        return {}
    blocks = read_settings_file(path).get("settings") or []
    try:
        return {
            dataset: tuple(block["set"]["base_scores"])
            for block in blocks
            if "base_scores" in block["set"]
            for dataset in block["datasets"]
        }
    except (KeyError, TypeError):
        form = "{methods: [...], datasets: [...], set: {base_scores: [...]}}"
        raise ArenaError(f"{path}: `settings` is not a list of blocks {form}: repair or remove it") from None


def study_portfolios(study: Study, k: int, seconds: float) -> list[StackPortfolio]:
    """Return the portfolio of each data set of a study, from its committed tables."""
    folder = report_dir(study.name)
    for path in (folder / "scores.csv", folder / "measured.csv"):
        if not path.is_file():
            raise ArenaError(
                f"{path} is not there: `{command('multilab')} study run --study {study.name}` needs results"
            )
    measured = read_table(folder / "measured.csv", ["dataset", "split", "method", "fit_seconds"])
    tables = {"scores": read_scores(folder), "measured": measured, "unfinished": read_unfinished(folder)}
    stacked = {name for name in study.all_methods if study.method(name).base_scores} | {
        name for name in study.all_methods if study.variant_of(name)
    }
    families = [pattern for patterns in arena_settings()["related"].values() for pattern in patterns]
    limit = study.limits.seconds if study.limits and study.limits.seconds else float("inf")
    return [
        choose_portfolio(dataset, **tables, k=k, seconds=seconds, limit=limit, exclude=stacked, families=families)
        for dataset in study.datasets
        if dataset in set(tables["scores"]["dataset"])
    ]


def stack_study(study: Study, members: Mapping[str, tuple[str, ...]]) -> str:
    """Return the YAML of the study of the stacks, with the splits, settings and limits of another study."""
    settings: list[dict[str, Any]] = list(read_settings("study", study.name).get("settings") or [])
    settings += [
        {"methods": list(STACKS), "datasets": [dataset], "set": {"base_scores": list(methods)}}
        for dataset, methods in members.items()
    ]
    content = {
        "like": study.name,
        "title": "Arena: stacks of portfolios",
        "description": (
            "The track *ensembled* of the arena: out-of-fold scores of a portfolio, combined. The portfolio of a set "
            "is chosen from results on other sets, without sets of the same family."
        ),
        "datasets": list(members),
        "methods": [*STACKS, DISTILLED],
        "settings_for_members": True,
        "settings": settings,
    }
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    return _HEADER + text
