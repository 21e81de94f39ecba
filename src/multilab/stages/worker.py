"""multilab worker: compute the missing cells of a study, or of a sweep, together with other workers.

  multilab worker study=mlwse                                   the study's cells, base scores first
  multilab worker dataset=emotions,scene 'method=glob(mlwse_*)' the cells of `multilab train -m` with these settings

Start it once per machine, on any number of machines, at any time. All name the same store, a folder on a shared disk
(MULTILAB_CELLS), and get the same data. A worker uses all cores it may use (MULTILAB_JOBS: fewer). Afterwards the usual
command collects: `dvc repro`, `multilab run study=mlwse` or `multilab train -m ...` finds all cells in the store.

A worker holds a lease on each cell it computes, a file in the store that it renews. If it is killed, others take its
cells over when the lease has run out; what it finished is kept. A cell that fails is recorded and not tried again; a
cell with which 5 workers died counts as failed. Stopped by SIGTERM or Ctrl-C, a worker gives its leases back at once.

options:
  --lease 10m      how long a lease lasts without being renewed (90s, 10m, 2h); workers may differ
  --idle-exit      end when nothing is left to start, instead of waiting for what others compute
  --retry-failed   try the cells that failed so far once more

The exit code is 0 if no cell failed.
"""

from multilab.commands.worker import run_worker


def main(argv: list[str]) -> int:
    """`multilab worker study=NAME | dataset=... method=... [--lease 10m] [--idle-exit] [--retry-failed]`."""
    return run_worker(argv)
