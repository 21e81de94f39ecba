"""The arena: leaderboards, pages, and portfolios of stacks.

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
  multilab arena page [out=reports/mine] | summary
      from leaderboard.json and the tables, without cells: the pages reports/arena/index.html and sets/NAME.html; in
      sentences reports/arena/summary.json and docs/arena-results.md.
  multilab arena portfolio [study=arena] [k=8] [seconds=60s] [out=conf/study/arena-stacks.yaml]
      per data set the methods that a stack combines, by results on other sets; a set in the file keeps its own.

docs/arena.md explains the arena and how to propose a method.
"""

import importlib

from multilab.arena.errors import ArenaError
from multilab.core.messages import unknown_name

_VERBS = {  # the function that runs each verb, in multilab.commands.arena
    "rank": "rank.rank",
    "page": "pages.write_pages",
    "summary": "summary.summarise_arena",
    "portfolio": "portfolios.choose",
}


def main(argv: list[str]) -> int:
    """`multilab arena rank | page | summary | portfolio`."""
    if not argv or {"-h", "--help"} & set(argv):
        print(__doc__)
        return 0
    verb, *rest = argv
    if verb not in _VERBS:
        raise ArenaError(unknown_name("verb of `multilab arena`", verb, _VERBS))
    module, _, function = _VERBS[verb].partition(".")
    return getattr(importlib.import_module(f"multilab.commands.arena.{module}"), function)(rest)
