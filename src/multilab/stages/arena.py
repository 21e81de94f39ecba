"""The arena: score files, submissions.

  multilab arena scores [study=arena] [dataset=A,B]
      pack the scores and decisions of all finished cells, one compressed file per data set, versioned by DVC.
  multilab arena metrics metric=A,B [policy=stored] [study=arena] [dataset=A,B] [out=FILE.csv]
      any metric of all columns from these files, without a fit; policy: stored, a threshold such as 0.4, cardinality,
      top_k, top_3.

`multilab arena scores --help` and so on have no further arguments than these.
"""

import importlib

from multilab.arena.errors import ArenaError
from multilab.core.messages import unknown_name

_VERBS = {  # the function that runs each verb, in multilab.commands.arena
    "scores": "score_files.pack",
    "metrics": "score_files.recompute",
}


def main(argv: list[str]) -> int:
    """`multilab arena scores | metrics`."""
    if not argv or {"-h", "--help"} & set(argv):
        print(__doc__)
        return 0
    verb, *rest = argv
    if verb not in _VERBS:
        raise ArenaError(unknown_name("verb of `multilab arena`", verb, _VERBS))
    module, _, function = _VERBS[verb].partition(".")
    return getattr(importlib.import_module(f"multilab.commands.arena.{module}"), function)(rest)
