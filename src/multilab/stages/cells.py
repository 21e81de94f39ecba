"""Look into the store of results, and clean it.

  multilab cells list [dataset=A,B] [method=PATTERN] [status=done|outdated|failed|broken] [metric=hamming_loss]
      a line per cell: key, status, date, seconds, size, the metric, dataset, split, protocol, method and settings.
      outdated: today's code, libraries or data would give another key.
  multilab cells show KEY          the record of a cell
  multilab cells why KEY KEY       what differs between two cells
  multilab cells rekey study=NAME [accept=METHOD,...] [recompute=METHOD,...] [sample=2] [seed=0] [reason="..."]
      give the committed results of a study their new keys after a change of code that leaves the numbers as they are;
      refused when settings differ (but for methods of accept=), or when recomputed cells (sample= per method) differ:
      by more than 1e-6, or at all without a reason=. Methods of recompute= keep their keys, so that `cells add` fits
      them again.
  multilab cells add study=NAME [retry=unfinished]
      fit the cells of a study that its committed results lack, and add their results: for a study that got new columns
      or data sets. retry=unfinished also tries those again that passed a limit or failed.
  multilab cells clean [dataset=...] [method=...] [--outdated] [--yes]
      what would be removed: failed, broken and half-written cells; with --outdated also those that are out of date.
      --yes removes them.
  multilab cells push|pull [REMOTE] [study=NAME]
      copy the cells that a remote, or the store, lacks; a damaged one is refused by name. REMOTE is a folder, an
      address (s3://..., ssh://...) or the name of a remote of DVC; default is DVC's. A stopped copy continues.

Keys may be shortened.
"""

import json

from multilab.commands.additions import add
from multilab.commands.arguments import arguments
from multilab.commands.cell_transfers import pull, push
from multilab.commands.cells import clean_cells, list_cells, why
from multilab.commands.rekeying import rekey
from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store


def main(argv: list[str]) -> int:
    """`multilab cells list | show KEY | why KEY KEY | rekey study=NAME | add study=NAME | clean | push | pull`."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    store, (verb, *rest) = Store(), argv or ["list"]
    if verb == "list":
        return list_cells(store, arguments(rest, "dataset", "method", "status", "metric"))
    if verb == "show" and len(rest) == 1:
        print(json.dumps(store.record(store.find(rest[0])), indent=1, sort_keys=True))
    elif verb == "why" and len(rest) == 2:
        print("\n".join(why(store, *(store.find(key) for key in rest))))
    elif verb == "rekey":
        return rekey(store, **arguments(rest, "study", "accept", "recompute", "sample", "seed", "reason"))
    elif verb == "add":
        return add(store, **arguments(rest, "study", "retry"))
    elif verb == "clean":
        return clean_cells(store, rest)
    elif verb in ("push", "pull"):
        return (push if verb == "push" else pull)(store, rest)
    else:
        verbs = "list | show KEY | why KEY KEY | rekey study=NAME | add study=NAME | clean | push | pull"
        raise ExperimentError(f"expected: multilab cells {verbs} (multilab cells --help)")
    return 0
