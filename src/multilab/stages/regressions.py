"""Which methods became worse than in an earlier `multilab compare`: a paired test over the same splits."""

import argparse
from pathlib import Path

from multilab.comparison.regressions import find_regressions, read_leaderboard
from multilab.core import write_atomically
from multilab.core.files import refuse_overwriting

_EXAMPLE = """
example:
  multilab compare dataset=mine out=reports/now
  multilab regressions reports/now/leaderboard.json --baseline reports/main/leaderboard.json

The test is the one-sided corrected resampled t test over the splits, after Holm's correction over the methods. Exit
code 0: no regression; 1: at least one; 2: the comparison is not possible (other splits, no such file).
"""


def main(argv: list[str]) -> int:
    """`multilab regressions NOW.json [--baseline BASELINE.json]`."""
    parser = argparse.ArgumentParser(
        prog="multilab regressions",
        description=__doc__,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("now", type=Path, help="leaderboard.json of the present state")
    parser.add_argument("--baseline", type=Path, help="leaderboard.json of the earlier state (default: print values)")
    parser.add_argument("--metric", help="default: the first metric of the comparison")
    parser.add_argument("--alpha", type=float, default=0.05, help="level of all tests together (default 0.05)")
    parser.add_argument("--tolerance", type=float, default=0.001, help="a smaller loss is none (default 0.001)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table as Markdown")
    arguments = parser.parse_args(argv)
    if arguments.markdown:
        refuse_overwriting(arguments.markdown, arguments.now, *([arguments.baseline] if arguments.baseline else []))
    result = find_regressions(
        read_leaderboard(arguments.now),
        read_leaderboard(arguments.baseline) if arguments.baseline else None,
        metric=arguments.metric,
        alpha=arguments.alpha,
        tolerance=arguments.tolerance,
    )
    shown = result.table.drop(columns=["p"])
    print(shown.to_string(float_format=lambda v: f"{v:.4f}", na_rep="-"), result.summary(), sep="\n")
    if arguments.markdown:
        write_atomically(arguments.markdown, result.to_markdown())
    return int(bool(result.names))
