"""The commands ``compare`` and ``regressions``."""

from __future__ import annotations

from pathlib import Path

import click

from multilab.cli.options import LEVEL, METRIC
from multilab.core import write_atomically
from multilab.core.files import refuse_overwriting


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def compare(argv: tuple[str, ...]) -> int:
    """Compare methods on one dataset within a time budget."""
    from multilab.cli.files import with_registered_files
    from multilab.stages.compare import main

    return main(with_registered_files(argv))


@click.command()
@click.argument("now", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="leaderboard.json of the earlier state (default: print the values of NOW).",
)
@click.option("--metric", type=METRIC, help="Default: the first metric of the comparison.")
@click.option("--level", type=LEVEL, default=0.05, show_default=True, help="Level of all tests together.")
@click.option("--tolerance", type=float, default=0.001, show_default=True, help="A smaller loss is none.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write the table as Markdown.")
def regressions(
    now: Path, baseline: Path | None, metric: str | None, level: float, tolerance: float, markdown: Path | None
) -> int:
    """Name methods that are worse than in an earlier compare.

    \b
    multilab compare --dataset mine --output reports/now
    multilab regressions reports/now/leaderboard.json --baseline reports/main/leaderboard.json

    NOW is the leaderboard.json of the present state. The test is the one-sided corrected resampled t test over the
    splits, after Holm's correction over the methods.

    Exit code: 0 no regression, 1 at least one, 2 the comparison is not possible (other splits, no such file).
    """
    from multilab.leaderboard.regressions import find_regressions, read_leaderboard

    if markdown:
        refuse_overwriting(markdown, now, *([baseline] if baseline else []))
    result = find_regressions(
        read_leaderboard(now),
        read_leaderboard(baseline) if baseline else None,
        metric=metric,
        alpha=level,
        tolerance=tolerance,
    )
    shown = result.table.drop(columns=["p"])
    print(shown.to_string(float_format=lambda v: f"{v:.4f}", na_rep="-"), result.summary(), sep="\n")
    if markdown:
        write_atomically(markdown, result.to_markdown())
    return int(bool(result.names))
