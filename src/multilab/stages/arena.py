"""The arena: leaderboards, pages, files of scores, portfolios of stacks, submissions of methods.

  multilab arena rank
      write reports/arena/leaderboard.json from the tables of the studies arena, arena-tuned, arena-stacks,
      arena-costs and arena-stack-costs (those that have results), and print the leaderboard over all metrics.
  multilab arena rank metric=macro_f1 sets=text [pool=default] [top=20]
      print a leaderboard, write nothing. metric: a metric or a group (overall, example, label, ranking), several
      with commas; sets: names, patterns, domains and conditions such as sets='virus-*,n<6000'; pool: default, tuned,
      ensembled or all (by default the one with the most sets); -unseen: without sets that decided the champion's rules.
  multilab arena rank default=mlekelm out=reports/mine
      the same of other studies: default=, tuned=, ensembled=, costs= and stack_costs= name them; out= keeps the file
      apart from that of the arena. anchor=METHOD has Elo 1000, champion=METHOD is tested against every other one.
  multilab arena scores [study=arena] [dataset=A,B]
      pack the scores and decisions of all finished cells, one compressed file per data set, versioned by DVC.
  multilab arena metrics metric=A,B [policy=stored] [study=arena] [dataset=A,B] [conventions=NAME] [out=FILE.csv]
      any metric of all columns from these files, without a fit; policy: stored, a threshold such as 0.4, cardinality,
      top_k, top_3; conventions: those of the study by default. Columns that lack a split have no mean and are last.
  multilab arena page [out=reports/mine] | summary
      from leaderboard.json and the tables, without cells: the pages reports/arena/index.html and sets/NAME.html; in
      sentences reports/arena/summary.json and docs/arena-results.md.
  multilab arena submit METHOD [--fit] [--full] [level=L1|L2] [study=arena] [out=submissions/METHOD.zip]
      one method file, its YAML and the numbers of its cells in one archive: of the first split of each data set, with
      --full of all. --fit fits cells that are missing. level: how exactly another machine gets the numbers: L1 to
      rounding (default), L2 to 0.005 (trees that depend on the last bits).
  multilab arena verify ARCHIVE [sample=10] [seed=0] [stamp=FILE] [markdown=FILE]
      check an archive or a folder, recompute a sample of its cells, write a stamp (NAME.verified.json), show the change
      of ranks. Exit code 1: numbers differ; 2: no valid submission. It runs the submitted code: use a container.
  multilab arena portfolio [study=arena] [k=8] [seconds=60s] [out=conf/study/arena-stacks.yaml]
      per data set the methods that a stack combines, by results on other sets; a set in the file keeps its own.

docs/guide/arena-submission.md has an example.
"""

import importlib

from multilab.arena.errors import ArenaError
from multilab.core.messages import unknown_name

_VERBS = {  # the function that runs each verb, in multilab.commands.arena
    "rank": "rank.rank",
    "scores": "score_files.pack",
    "metrics": "score_files.recompute",
    "page": "pages.write_pages",
    "summary": "summary.summarise_arena",
    "submit": "submitting.submit_method",
    "verify": "verifying.verify_submission",
    "portfolio": "portfolios.choose",
}


def main(argv: list[str]) -> int:
    """`multilab arena rank | page | summary | scores | metrics | portfolio | submit | verify`."""
    if not argv or {"-h", "--help"} & set(argv):
        print(__doc__)
        return 0
    verb, *rest = argv
    if verb not in _VERBS:
        raise ArenaError(unknown_name("verb of `multilab arena`", verb, _VERBS))
    module, _, function = _VERBS[verb].partition(".")
    return getattr(importlib.import_module(f"multilab.commands.arena.{module}"), function)(rest)
