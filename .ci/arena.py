#!/usr/bin/env python3
"""Recompute cells of the arena that a change touches: python .ci/arena.py [BASE]. Exit code 1: a number is wrong.

BASE is the commit to compare the checkout with (default: HEAD^1, the target branch of a merge). Recomputed are

- ten cells of the methods whose YAML changed;
- ten of the cells whose committed scores changed, of one method after the other, so that a single forged number
  does not hide behind the results of a new method;
- without either, ten random cells: the code may have changed.
"""

import gzip
import random
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

CELLS = 10
SCORES = "reports/arena/scores.csv.gz"


def scores(content: bytes) -> set[str]:
    """Return the rows of a compressed table of scores: dataset,split,method,metric,value."""
    return set(gzip.decompress(content).decode().splitlines()[1:]) if content else set()


def changed_cells(before: bytes, now: bytes) -> list[str]:
    """Return the cells of which a score is new or another one, at random, of one method after the other."""
    cells = sorted({tuple(row.split(",")[:3]) for row in scores(now) - scores(before)})
    random.shuffle(cells)
    by_method: dict[str, list[str]] = {}
    for dataset, split, method in cells:
        by_method.setdefault(method, []).append(f"{dataset}/{split}/{method}")
    return [cell for turn in zip_longest(*by_method.values()) for cell in turn if cell]


def changed_methods(base: str) -> list[str]:
    """Return the methods of the arena whose YAML is new or changed."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", base, "--", "conf/entrant/*.yaml", "conf/method/*.yaml"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    lines = Path("conf/study/arena.yaml").read_text(encoding="utf-8").splitlines()
    entered = {line.strip()[2:].partition("#")[0].strip() for line in lines if line.strip().startswith("- ")}
    return sorted({Path(file).stem for file in files} & entered)


def main(base: str = "HEAD^1") -> int:
    """Run the gate, once or twice; return 1 if it fails."""
    before = subprocess.run(["git", "show", f"{base}:{SCORES}"], capture_output=True, check=False).stdout
    cells, methods = changed_cells(before, Path(SCORES).read_bytes()), changed_methods(base)
    chosen = [["--method", ",".join(methods), "--sample", str(CELLS)]] if methods else []
    if cells:
        print(f"cells whose scores differ from {base}: {len(cells)}, recomputed: {min(CELLS, len(cells))}", flush=True)
        chosen += [["--cell", ",".join(cells[:CELLS])]]
    failed = [
        subprocess.run(["multilab", "gate", "--study", "arena", *options], check=False).returncode
        for options in chosen or [["--sample", str(CELLS)]]
    ]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
