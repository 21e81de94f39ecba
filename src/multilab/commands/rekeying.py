"""The command `multilab store rekey`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from multilab.commands.progress import ProgressBar
from multilab.core import report_dir
from multilab.core.messages import unknown_name
from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store
from multilab.experiments.study import Study, load_study
from multilab.papers import find

if TYPE_CHECKING:
    from multilab.experiments.cells import Cell
    from multilab.experiments.rekeying import Match


def rekey(
    store: Store,
    study: str,
    accept: str = "",
    seed: int = 0,
    reason: str = "",
    sample: int = 2,
    recompute: str = "",
) -> int:
    """Give the committed results of a study their new keys; return 1, having changed nothing, if they may not.

    Parameters
    ----------
    store : Store
        Cells that are in it are copied to their new keys.
    study : str
        Name of the study.
    accept : str
        Methods whose settings may differ, comma-separated: the same arguments written in another way.
    seed : int
        Seed of the recomputed sample.
    reason : str
        Reason why recomputed numbers may differ from the committed ones by up to 1e-6.
    sample : int
        Number of cells per method that are recomputed.
    recompute : str
        Methods whose numbers changed, comma-separated: they keep their keys, so that `multilab store add` fits them.
    """
    from multilab.experiments import rekeying

    described, folder = load_study(study), report_dir(study)
    matches = rekeying.match_cells(described, folder)
    changed = set(filter(None, recompute.split(",")))
    if unknown := changed - {match.cell.method.name for match in matches}:
        raise ExperimentError(unknown_name("method", min(unknown), described.all_methods))
    matches = [match for match in matches if match.cell.method.name not in changed]
    moved = [match for match in matches if match.moved]
    print(f"{study}: {len(moved)} of {len(matches)} results have another key now")
    if not moved:
        return 0
    accepted = set(accept.split(","))
    changes = rekeying.changed_settings(described, folder, moved)
    for method, lines in changes.items():
        print(*(f"{'accepted' if method in accepted else 'REFUSED'}: {line}" for line in lines), sep="\n")
    cells = rekeying.sample_cells(moved, folder, seed, store, sample)
    wrong = _recomputed(described, folder, moved, store, cells, reason)
    if wrong or set(changes) - accepted:
        print(*wrong, f"rekey REFUSED: {study} keeps its keys", sep="\n")
        return 1
    copied = rekeying.copy_cells(moved, store, changes)
    rekeying.write_new_keys(folder, matches)
    print(f"rekey passed: {folder / 'keys.csv'} is written; {copied} cells copied in {store.root}")
    if changed:
        print(f"{recompute}: multilab store add --study {study} fits them again")
    return 0


def _recomputed(
    study: Study, folder: Path, moved: list[Match], store: Store, cells: list[Cell], reason: str
) -> list[str]:
    """Recompute cells, compare them with committed and stored results; return a line for each that may not differ."""
    from multilab.experiments import gate, rekeying
    from multilab.experiments.evaluation import extra_quantities
    from multilab.experiments.execute import run_cells

    expected = gate.committed_numbers(folder)
    reads = {read.key: read for cell in cells for read in cell.reads}
    with tempfile.TemporaryDirectory(prefix="multilab-rekey-") as temporary:
        fresh = Store(temporary)
        progress = ProgressBar(f"rekey: {len(cells)} cells of {study.name}")
        failed = run_cells([*reads.values(), *cells], fresh, progress=progress)
        done = [cell for cell in cells if fresh.has(cell.key)]
        extra = extra_quantities(study, find(study.paper).tables if study.paper else None)
        numbers = gate.fingerprints(done, fresh, study.conventions, extra)
        changed = rekeying.stored_differences(moved, store, fresh, gate.L1)
    exact = gate.differences(numbers, expected, 0.0)
    largest = max(exact, key=lambda d: abs(d.computed - d.expected) / max(1.0, abs(d.expected)), default=None)
    compared = sum(len(expected[name]) for name in numbers)
    print(f"recomputed {len(done)} cells of {len({c.method.name for c in done})} methods: {compared} numbers,", end=" ")
    print(f"{len(exact)} differ, most of all {largest}" if largest else "all equal (L0)")
    wrong = [*(f"{label} failed: {text}" for label, text in failed.items()), *changed]
    wrong += [str(difference) for difference in gate.differences(numbers, expected, gate.L1)]
    if exact and not wrong and not reason:
        return [f"equal at L1 ({gate.L1:g}) only: give a --reason"]
    if exact and not wrong:
        print(f"accepted at L1 ({gate.L1:g}): {reason}")
    return wrong
