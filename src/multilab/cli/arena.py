"""The commands about the arena: rank, page, summary, portfolio."""

from __future__ import annotations

from pathlib import Path

import click

from multilab.cli import completion
from multilab.cli.options import COUNT, METHOD, STUDY, Duration, Name, study_option
from multilab.core import conf_dir, report_dir

_METRICS = Name("name", lambda: ["overall", "example", "label", "ranking", *completion.metrics()])
_SETS = Name("set", lambda: ["text", "image", "audio", "biology", "medicine", *completion.names("dataset")])
# written out, because importing `multilab.arena.tracks` would slow down every help text
_POOLS = ("default", "tuned", "ensembled", "all", "ensembled-unseen", "all-unseen")


@click.group()
def arena() -> None:
    """Compare all methods on many datasets.

    docs/arena.md explains the arena and how to propose a method.
    """


@arena.command()
@click.option("--metric", type=_METRICS, metavar="NAME,...", help="Metrics, or overall, example, label, ranking.")
@click.option("--sets", type=_SETS, metavar="SET,...", help="Names, patterns, domains, conditions: 'n<6000'.")
@click.option(
    "--pool", type=Name("pool", lambda: list(_POOLS)), help="Pool of tracks (default: the one with the most sets)."
)
@click.option("--top", type=COUNT, help="Print only the first N methods.")
@click.option("--default", type=STUDY, help="Study of the untuned methods (arena).")
@click.option("--tuned", type=STUDY, help="Study of the tuned methods (arena-tuned).")
@click.option("--ensembled", type=STUDY, help="Study of the stacks (arena-stacks).")
@click.option("--costs", type=STUDY, help="Study of the costs (arena-costs).")
@click.option("--stack-costs", type=STUDY, help="Study of the costs of the stacks (arena-stack-costs).")
@click.option("--anchor", type=METHOD, help="The method with Elo 1000.")
@click.option("--tested", type=METHOD, help="The method that is tested against every other one.")
@click.option("-o", "--output", metavar="FOLDER", help="Folder for leaderboard.json.gz (reports/arena).")
def rank(top: int | None, output: str | None, **options: str | None) -> None:
    """Print one leaderboard, or write all of them.

    \b
    multilab arena rank                                               all of them, to reports/arena/leaderboard.json.gz
    multilab arena rank --metric macro_f1 --sets text                 print one, write nothing
    multilab arena rank --metric overall --sets 'virus-*,n<6000'
    multilab arena rank --default mlekelm --output reports/mine       leaderboards of another study

    Without --metric, --sets and --pool, the command reads the tables of the studies that have results, and writes all
    leaderboards to leaderboard.json.gz and all results to results.parquet. The pools are default, tuned, ensembled and
    all; a pool with -unseen excludes the datasets that decided the rules of the tested stack.
    """
    from multilab.reports.arena.rank import rank as rank_methods

    rank_methods({name: value for name, value in options.items() if value is not None}, top, output)


@arena.command()
@click.option("-o", "--output", metavar="FOLDER", help="The folder of leaderboard.json.gz (reports/arena).")
def page(output: str | None) -> None:
    """Write index.html from leaderboard.json.gz."""
    from multilab.reports.arena.page import build_arena_page

    print(f"page:    {build_arena_page(Path(output) if output else report_dir('arena')).resolve()}")


@arena.command()
def summary() -> None:
    """Write summary.json and docs/arena-results.md."""
    from multilab.reports.arena.rank import summarise_arena

    summarise_arena()


@arena.command()
@study_option("The study of the methods.", default="arena")
@click.option("--k", type=COUNT, default=8, show_default=True, help="Number of methods in a portfolio.")
@click.option("--budget", type=Duration(), default="60s", show_default=True, help="Time for the fits of a portfolio.")
@click.option("-o", "--output", metavar="FILE", help="Study file to write (conf/study/arena-stacks.yaml).")
def portfolio(study: str, k: int, budget: float, output: str | None) -> None:
    """Choose the methods that each stack combines.

    The portfolio of a dataset is chosen by the results on the other datasets. A dataset that is already in the file
    keeps its portfolio.
    """
    from multilab.experiments.study import load_study
    from multilab.reports.arena.rank import choose

    path = Path(output) if output else conf_dir() / "study" / "arena-stacks.yaml"
    choose(load_study(study), k, budget, path)
