"""Copies of the store in a remote: `multilab cells push` and `multilab cells pull`."""

import sys
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

from multilab.commands.arguments import arguments
from multilab.commands.progress import ProgressBar
from multilab.core import MultilabError
from multilab.experiments.analysis_units import units_of
from multilab.experiments.cells import Cell, all_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.remotes import Remote, open_remote
from multilab.experiments.store import Store
from multilab.experiments.study import load_study
from multilab.papers import analyses_of

_THREADS = 4


def push(store: Store, argv: list[str]) -> int:
    """Copy the finished cells that a remote lacks to it; return an exit code."""
    address, study = _arguments(argv)
    remote = open_remote(address)
    keys = set(store.finished())
    keys &= _keys_of(study) if study else keys
    present = _present(remote)
    return _transfer("push", remote, keys - present, len(keys), lambda key: remote.send(store, key))


def pull(store: Store, argv: list[str]) -> int:
    """Copy the cells that the store lacks from a remote, verified on arrival; return an exit code."""
    address, study = _arguments(argv)
    remote = open_remote(address)
    keys = _present(remote)
    keys &= _keys_of(study) if study else keys
    missing = {key for key in keys if not store.has(key)}
    store.sweep()
    return _transfer("pull", remote, missing, len(keys), lambda key: remote.fetch(store, key))


def _arguments(argv: list[str]) -> tuple[str | None, str | None]:
    """Return the remote and the study that a command line names."""
    named = [word for word in argv if word.startswith("study=")]
    remotes = [word for word in argv if word not in named]
    if len(remotes) > 1 or any(word.startswith("-") for word in remotes):
        raise ExperimentError(f"expected one remote and study=NAME, got {' '.join(argv)!r} (multilab cells --help)")
    return next(iter(remotes), None), arguments(named, "study").get("study")


def _keys_of(study: str) -> set[str]:
    """Return the keys of all cells of a study: those of its columns, those they read, those of its analyses."""
    described = load_study(study)
    cells: list[Cell] = list(all_cells(described))
    units = list(units_of(described, analyses_of(described)))
    cells += [unit.cell for unit in units if unit.cell]
    return {unit.key for unit in units} | {key for cell in cells for key in (cell.key, *(c.key for c in cell.reads))}


def _present(remote: Remote) -> set[str]:
    try:
        return remote.keys()
    except Exception as error:  # whatever the file system raises
        raise _unreachable(remote, error) from error


def _transfer(verb: str, remote: Remote, keys: Collection[str], total: int, copy: Callable[[str], None]) -> int:
    """Copy cells one by one; print those that are refused and how many were copied."""
    began, refused = time.perf_counter(), {}

    def attempt(key: str) -> tuple[str, str]:
        try:
            copy(key)
        except MultilabError as error:
            return key, str(error)
        return key, ""

    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for key, reason in ProgressBar(f"{verb}: cells")(pool.map(attempt, sorted(keys)), len(keys)):
                if reason:
                    refused[key] = reason
        except Exception as error:  # whatever the file system raises
            raise _unreachable(remote, error) from error
    for key, reason in refused.items():
        print(f"refused: {key}: {reason}", file=sys.stderr)
    counts = f"{total} cells, {total - len(keys)} there already, {len(keys) - len(refused)} copied"
    print(f"{verb} {remote.name}: {counts}, {time.perf_counter() - began:.1f} s")
    return int(bool(refused))


def _unreachable(remote: Remote, error: Exception) -> ExperimentError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return ExperimentError(f"{remote.name}: {reason}; what was copied is kept, the same command continues")
