"""multilab compare: a portfolio of methods on one dataset inside a budget of time, with a recommendation.

  multilab compare dataset=yeast                                 the portfolio, 5 folds, 10 minutes
  multilab compare dataset=yeast budget=90s metric=ranking_loss  less time, another first metric
  multilab compare dataset=yeast methods=br_logistic,'elm*'      other methods, by name and glob
  multilab compare dataset=mine cv=10 out=reports/mine           more folds, another folder
  multilab compare dataset=./my.csv labels='tag_*'               a file of your own

Before anything is fitted, every method gets an estimate of seconds and memory from the size of the table. Cheap
methods run first, all on the same stratified folds. What does not fit into the budget is named and left out; a method
that takes 4 times its estimate is stopped. Every fit is kept: the next run continues, a larger budget adds methods.

The report (reports/compare/NAME/index.html) has ranks, intervals, quality against seconds, what thresholds and
calibration would change, a table per label, a learning curve, and a recommendation with its reason. Next to it are the
numbers as CSV and leaderboard.json, which has the value of each metric on each split, with the digest of its rows.
Thresholds are recommended only if their gain is more than chance, and no candidate that assigns a label far too often.

settings (name=value):
  dataset=NAME       multilab datasets list, or a data file with labels='tag_*' (multilab datasets add --help)
  methods=A,B,'C*'   names and globs (multilab methods list); default: those of conf/portfolio.yaml
  budget=10m         90s, 10m or 2h for everything; 70 % of it is for the fits
  metric=macro_f1    orders the methods; the tests are about it
  cv=5               number of stratified folds; more give sharper tests
  out=FOLDER         where the report is written (reports/compare/NAME)

The exit code is 0 if a method besides the baseline finished, 1 if none did, 2 for a mistake in the command.
In Python: from multilab import compare.
"""

from multilab.commands.arguments import arguments
from multilab.commands.compare import ARGUMENTS, request_from, run_comparison


def main(argv: list[str]) -> int:
    """`multilab compare dataset=NAME [methods=A,B,'C*'] [budget=10m] [metric=macro_f1] [cv=5] [out=FOLDER]`."""
    return run_comparison(request_from(arguments(argv, *ARGUMENTS)))
