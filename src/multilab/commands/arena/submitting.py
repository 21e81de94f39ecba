"""`multilab arena submit`: an archive of one method file, one YAML and the numbers of its cells."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from multilab.arena.errors import ArenaError
from multilab.arena.submissions.archive import LEVELS, Manifest, submission_archive
from multilab.arena.submissions.method_source import check_dependencies, read_source
from multilab.commands.arena.submission_cells import submission_cells, versions_here
from multilab.commands.arguments import arguments
from multilab.commands.progress import ProgressBar
from multilab.core import array_digest, conf_dir, write_atomically
from multilab.core.shell import command, short_path
from multilab.experiments import gate
from multilab.experiments.cells import Cell, with_reads
from multilab.experiments.environment import environment
from multilab.experiments.execute import run_cells
from multilab.experiments.method import Method, load_method
from multilab.experiments.own_settings import named_file, settings_path
from multilab.experiments.store import Store
from multilab.experiments.stored import Inventory
from multilab.experiments.study import Study, load_study


def submit_method(argv: list[str]) -> int:
    """Write the archive of a method; with ``--fit`` fit its missing cells first."""
    flags = {argument for argument in argv if argument in ("--full", "--fit")}
    named = [argument for argument in argv if argument not in flags and "=" not in argument]
    options = arguments([argument for argument in argv if "=" in argument], "study", "level", "out")
    if len(named) != 1:
        raise ArenaError(
            "expected: multilab arena submit METHOD [--fit] [--full] [level=L1|L2] [study=arena] [out=FILE]"
        )
    level = options.get("level", "L1")
    if level not in LEVELS:
        raise ArenaError(f"level={level}: L1 (closed forms, equal to rounding) or L2 (trees, equal to {gate.L2:g})")
    name = named_file("method", named[0])
    study, store = load_study(options.get("study", "arena")), Store()
    method, code, settings = _files(name)
    source = read_source(name, code, settings)
    check_dependencies(source.dependencies)
    splits = "all" if "--full" in flags else "first"
    cells = submission_cells(study, name, splits)
    if "--fit" in flags:
        run_cells(with_reads(cells), store, progress=ProgressBar(f"cells of {name}"), limits=study.limits)
    _check_finished(cells, store, f"arena submit {' '.join(argv)} --fit")
    here = environment()
    manifest = Manifest(
        name=name,
        study=study.name,
        splits=splits,
        level=level,
        licence=source.licence,
        authors=source.authors,
        dependencies=source.dependencies,
        distributions=method.distributions(),
        search_space=method.search,
        versions=versions_here(),
        machine=here["machine"],
        commit=here["commit"] or "",
    )
    rows, scores = cell_tables(cells, study, store)
    path = Path(options.get("out", f"submissions/{name}.zip"))
    write_atomically(path, submission_archive(manifest, code, settings, rows, scores))
    print(f"{path}: {name} on {len(study.datasets)} data sets, {len(cells)} cells, {path.stat().st_size / 1e3:.1f} kB")
    print(
        f"  {source.authors}; {source.licence}; {level}; " + ", ".join(f"{k} {v}" for k, v in manifest.versions.items())
    )
    print(f"Next: {command('multilab')} arena verify {path}")
    return 0


def cell_tables(cells: list[Cell], study: Study, store: Store) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return keys and digests of the scores of cells, and their metrics with the norms of their arrays."""
    rows, scores = [], []
    for cell in ProgressBar("metrics")(cells, len(cells)):
        where = cell.split_ref.dataset, cell.split_ref.split
        rows.append((*where, cell.key, array_digest(store.arrays(cell.key)["scores"])))
        numbers = gate.fingerprint(cell, store, study.conventions)
        scores += [(*where, cell.method.name, metric, float(value)) for metric, value in numbers.items()]
    return (
        pd.DataFrame(rows, columns=["dataset", "split", "key", "digest"]),
        pd.DataFrame(scores, columns=["dataset", "split", "method", "metric", "value"]),
    )


def _files(name: str) -> tuple[Method, str, str]:
    """Return the method of an author, the text of its file (empty if there is none), and its YAML."""
    path, method = settings_path("method", name), load_method(name)
    if path.is_relative_to(conf_dir()):
        advice = f"`{command('multilab')} new method NAME --outside` writes one of your own"
        raise ArenaError(f"{name} is in the package already; {advice}")
    folder = path.parents[2] if path.parent.parent.name == "conf" else path.parent
    module = method.target.partition(".")[0]
    own = folder / f"{module}.py"
    if module != name and (own.is_file() or (folder / module).is_dir()):
        raise ArenaError(f"{short_path(path)}: _target_ is {method.target}; the class must be in {name}.py")
    code = own.read_text("utf-8") if module == name and own.is_file() else ""
    return method, code, path.read_text("utf-8")


def _check_finished(cells: list[Cell], store: Store, advice: str) -> None:
    """Refuse cells that are not finished: those that failed, are out of date, or were never run."""
    missing = [cell for cell in cells if not store.has(cell.key)]
    if not missing:
        return
    for cell in missing:
        if failure := store.failure(cell.key):
            raise ArenaError(f"{cell.label}: no result: {str(failure['reason'])[:200]}")
    inventory, method = Inventory(store), missing[0].method.name
    datasets = ",".join(sorted({cell.split_ref.dataset for cell in missing}))
    older = [cell for cell in inventory.cells(datasets, method, "done") if inventory.outdated(cell)]
    reason = f", {len(older)} in the store are out of date ({inventory.outdated(older[0])})" if older else ""
    counts = f"{len(missing)} of {len(cells)} cells of {method} are not finished{reason}"
    raise ArenaError(f"{counts}; `{command('multilab')} {advice}` fits them")
