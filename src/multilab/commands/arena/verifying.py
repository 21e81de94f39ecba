"""`multilab arena verify`: checks of a submission, recomputation of a sample of its cells, its stamp and its ranks."""

from __future__ import annotations

import json
import math
import re
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena.errors import ArenaError
from multilab.arena.submissions.archive import Manifest, Submission, read_submission
from multilab.arena.submissions.joining import rank_changes
from multilab.arena.submissions.method_source import check_dependencies, read_source
from multilab.commands.arena.recomputing import recompute_apart
from multilab.commands.arena.submission_cells import submission_cells, versions_here
from multilab.commands.arguments import arguments
from multilab.core import array_digest, conf_dir, report_dir, write_atomically
from multilab.core.files import refuse_overwriting
from multilab.core.messages import printable
from multilab.experiments import gate
from multilab.experiments.cells import Cell
from multilab.experiments.environment import environment
from multilab.experiments.own_settings import named_file
from multilab.experiments.store import Store
from multilab.experiments.study import Study, load_study
from multilab.metrics import METRICS
from multilab.statistics.result_files import read_scores

TOLERANCES = {"L1": gate.L1, "L2": gate.L2}
"""Allowed difference of a number by level, times max(1, its size): that of the gate."""


def verify_submission(argv: list[str]) -> int:
    """Check a submission and recompute a sample of its cells; return 0 if all is as submitted, else 1."""
    named = [argument for argument in argv if "=" not in argument]
    options = arguments([argument for argument in argv if "=" in argument], "sample", "seed", "stamp", "markdown")
    if len(named) != 1 or named[0].startswith("-"):
        raise ArenaError("expected: multilab arena verify ARCHIVE [sample=10] [seed=0] [stamp=FILE] [markdown=FILE]")
    sample, seed = (_count(options, key, default) for key, default in (("sample", 10), ("seed", 0)))
    path = Path(named[0])
    default = path / "verified.json" if path.is_dir() else path.with_suffix(".verified.json")
    stamp_path = Path(options.get("stamp", default))
    for output in (stamp_path, Path(options.get("markdown", stamp_path))):
        refuse_overwriting(output, path, *(file for file in path.glob("*") if file.name != "verified.json"))
    submission = read_submission(path)
    manifest = submission.manifest
    _check_declared(submission)
    study = load_study(manifest.study)
    committed = _committed(study)
    counts = f"{len(submission.cells)} cells of {study.name}"
    print(printable(f"{path}: {manifest.name} by {manifest.authors} ({manifest.licence}), {counts}"))
    print("recomputing runs the submitted code: in CI or a container, not on a machine with anything to protect")
    with tempfile.TemporaryDirectory(prefix="multilab-verify-") as folder:
        settings = _written(submission, Path(folder) / "method")
        cells = submission_cells(study, manifest.name, manifest.splits)
        _check_cells(submission, cells)
        _check_undefined(submission, committed)
        chosen = _sampled(cells, sample, seed)
        store = Path(folder) / "store"
        failed = recompute_apart(study.name, settings, chosen, store)
        outcome = _compared(submission, study, chosen, Store(store), failed)
    stamp = _stamp(submission, chosen, seed, outcome)
    _print_outcome(outcome, stamp, len(cells))
    write_atomically(stamp_path, json.dumps(stamp, indent=1, allow_nan=False) + "\n")
    table, reason = _ranks(submission, study, committed)
    print(*_rank_lines(manifest.name, table, reason), f"{stamp_path}: the stamp", sep="\n")
    if "markdown" in options:
        write_atomically(options["markdown"], _markdown(manifest, stamp, table, len(cells)))
    return int(bool(outcome.wrong))


@dataclass(frozen=True)
class _Outcome:
    """Differences, the largest finite one of a number, and the number of cells with bitwise equal scores."""

    wrong: list[str]
    largest: float
    n_equal: int


def _stamp(submission: Submission, cells: list[Cell], seed: int, outcome: _Outcome) -> dict[str, Any]:
    """Return the content of ``verified.json``."""
    here, manifest = environment(), submission.manifest
    return {
        "name": manifest.name,
        "study": manifest.study,
        "submission": submission.digest,
        "result": "refused" if outcome.wrong else "verified",
        "level": manifest.level,
        "tolerance": TOLERANCES[manifest.level],
        "cells": [gate.cell_name(cell) for cell in cells],
        "seed": seed,
        "largest_difference": outcome.largest,
        "same_bits": outcome.n_equal,
        "differences": outcome.wrong[:20],
        "commit": here["commit"],
        "date": here["created"],
        "machine": here["machine"],
        "versions": versions_here(),
    }


def _print_outcome(outcome: _Outcome, stamp: dict[str, Any], n_cells: int) -> None:
    for line in outcome.wrong[:20]:
        print(printable(f"VERIFY: {line}"))
    counts = f"{len(stamp['cells'])} of {n_cells} cells recomputed (seed {stamp['seed']})"
    compared = f"compared at {stamp['level']} ({stamp['tolerance']:g}), largest difference {outcome.largest:.1e}"
    print(f"{stamp['result']}: {counts}, {compared}, {outcome.n_equal} with the same bits")


def _count(options: dict[str, str], key: str, default: int) -> int:
    text = options.get(key, str(default))
    least = int(key == "sample")
    if not text.isdecimal() or int(text) < least:
        raise ArenaError(f"{key} must be a whole number, at least {least}, got {text!r}")
    return int(text)


def _check_declared(submission: Submission) -> None:
    """Refuse a manifest that differs from its method file, a name that is taken, and dependencies that are not here."""
    manifest = submission.manifest
    source = read_source(manifest.name, submission.code, submission.settings)
    for key in ("licence", "authors", "dependencies"):
        if getattr(manifest, key) != getattr(source, key):
            raise ArenaError(f"manifest.json: {key} is not that of the method file; submit again")
    package = {path.stem for group in ("method", "entrant") for path in (conf_dir() / group).glob("*.yaml")}
    module = find_spec(manifest.name) if submission.code else None
    own = module is not None and Path(module.origin or "").suffix == ".py"
    if manifest.name in package or (module and not (own and Path(str(module.origin)).read_text() == submission.code)):
        raise ArenaError(f"there is a method or a module {manifest.name!r} already; choose another name")
    check_dependencies(source.dependencies)


def _written(submission: Submission, folder: Path) -> Path:
    """Write method file and YAML into a new folder under our own names; return the path of the YAML."""
    settings = folder / "conf" / "method" / f"{submission.manifest.name}.yaml"
    write_atomically(settings, submission.settings)
    if submission.code:
        write_atomically(folder / f"{submission.manifest.name}.py", submission.code)
    named_file("method", str(settings))
    return settings


def _check_cells(submission: Submission, cells: list[Cell]) -> None:
    """Refuse cells that are missing, too many, or not those of the submitted files: keys and metrics are checked."""
    manifest, here = submission.manifest, versions_here()
    for library, number in here.items():
        if library not in ("python", "multilab") and manifest.versions.get(library) != number:
            was = manifest.versions.get(library, "no version")[:20]
            raise ArenaError(f"computed with {library} {was}, here it is {number}: install the versions of the lock")
    rows = submission.cells
    keys = {(d, int(s)): key for d, s, key in rows[["dataset", "split", "key"]].itertuples(index=False, name=None)}
    expected = {(cell.split_ref.dataset, cell.split_ref.split): cell.key for cell in cells}
    if len(keys) != len(rows) or keys.keys() - expected.keys():
        raise ArenaError("cells.csv: a cell is there twice, or is none of the study")
    for (dataset, split), key in expected.items():
        if (dataset, split) not in keys:
            raise ArenaError(f"cells.csv: {dataset}, split {split} is missing; the study has it, so submit again")
        if keys[dataset, split] != key:
            raise ArenaError(
                f"cells.csv: the key on {dataset}, split {split} is not that of the submitted files: code, settings, "
                f"data or multilab changed after the cells were computed"
            )
    _check_scores(submission, set(expected))


def _check_scores(submission: Submission, expected: set[tuple[str, int]]) -> None:
    scores, name = submission.scores, submission.manifest.name
    for where, own in scores.groupby(["dataset", "split"]):
        complete = set(METRICS) <= set(own["metric"]) and not own["metric"].duplicated().any()
        if where not in expected or not complete or set(own["method"]) != {name}:
            raise ArenaError(f"scores.csv: {where[0]}, split {where[1]} does not have each metric once")
    if len(expected) != scores.groupby(["dataset", "split"]).ngroups:
        raise ArenaError("scores.csv: not every cell has its metrics")
    for metric, own in scores.groupby("metric"):
        if not re.fullmatch(r"[A-Za-z0-9_. ]{1,80}", str(metric)):
            raise ArenaError(f"scores.csv: {str(metric)[:40]!r} is no name of a number")
        values = own["value"].dropna()
        if metric in METRICS and not (values.between(*METRICS[str(metric)].range) & np.isfinite(values)).all():
            raise ArenaError(f"scores.csv: {metric} is outside its range")


def _committed(study: Study) -> pd.DataFrame | None:
    """Return the committed scores of a study, ``None`` if there is no file."""
    folder = report_dir(study.name)
    return read_scores(folder) if (folder / "scores.csv").is_file() else None


def _check_undefined(submission: Submission, committed: pd.DataFrame | None) -> None:
    """Refuse NaN where a committed method has a value: it takes the data set from the metric for all methods."""
    if committed is None:
        return
    index = ["dataset", "split", "metric"]
    undefined = submission.scores[submission.scores["value"].isna()]
    others = committed[(committed["method"] != submission.manifest.name) & committed["value"].notna()]
    for dataset, split, metric in undefined.merge(others[index].drop_duplicates(), on=index)[index].to_numpy():
        where = f"{metric} on {dataset}, split {split}"
        raise ArenaError(f"scores.csv: {where} is NaN; committed methods have a value there, so it must be a number")


def _sampled(cells: list[Cell], sample: int, seed: int) -> list[Cell]:
    picked = np.random.default_rng(seed).choice(len(cells), size=min(sample, len(cells)), replace=False)
    return [cells[index] for index in sorted(picked)]


def _compared(
    submission: Submission, study: Study, cells: list[Cell], store: Store, failed: dict[str, str]
) -> _Outcome:
    """Compare the numbers of recomputed cells with those submitted."""
    done = [cell for cell in cells if store.has(cell.key)]
    reasons = {label: " ".join(reason.split())[:200] for label, reason in failed.items()}
    wrong = [f"{cell.label}: {reasons.get(cell.label, 'not computed')}" for cell in cells if cell not in done]
    computed = gate.fingerprints(done, store, study.conventions)
    rows = submission.scores
    groups = rows.groupby(rows["dataset"] + "/" + rows["split"].astype(str) + "/" + rows["method"])
    submitted = {str(name): dict(zip(own["metric"], own["value"], strict=True)) for name, own in groups}
    expected = {name: submitted[name] for name in computed}
    allowed = TOLERANCES[submission.manifest.level]
    wrong += [
        f"{d.cell}: {d.quantity} is {d.computed:.10g}, submitted is {d.expected:.10g}"
        for d in gate.differences(computed, expected, allowed)
    ]
    wrong += [
        f"{name}: {metric} is not submitted" for name in computed for metric in computed[name].keys() - expected[name]
    ]
    gaps = [abs(computed[n][m] - v) for n, values in expected.items() for m, v in values.items() if m in computed[n]]
    finite = [gap for gap in gaps if math.isfinite(gap)]
    keys = submission.cells.set_index("key")["digest"]
    equal = sum(keys[cell.key] == array_digest(store.arrays(cell.key)["scores"]) for cell in done)
    return _Outcome(wrong, max(finite, default=0.0), int(equal))


def _ranks(submission: Submission, study: Study, committed: pd.DataFrame | None) -> tuple[pd.DataFrame | None, str]:
    """Return the ranks of the study with the submission, or ``None`` and the reason."""
    if committed is None:
        return None, f"there is no {report_dir(study.name)}/scores.csv"
    try:
        return rank_changes(committed, submission.scores), ""
    except ArenaError as error:
        return None, str(error)


def _rank_lines(name: str, table: pd.DataFrame | None, reason: str) -> list[str]:
    if table is None:
        return [f"no ranks: {reason}"]
    position = list(table.index).index(name)
    near = table.iloc[max(0, position - 3) : position + 4][["before", "after"]]
    text = near.to_string(float_format=lambda value: f"{value:.2f}", na_rep="-")
    return [f"{name} would be number {_number(name, table)} of {len(table)} by all metrics:", text]


def _number(name: str, table: pd.DataFrame) -> int:
    return int((table["after"] < table.loc[name, "after"]).sum()) + 1


def _markdown(manifest: Manifest, stamp: dict[str, Any], table: pd.DataFrame | None, n_cells: int) -> str:
    """Return the comment on a pull request; texts of the submission are names and numbers only."""
    name = manifest.name
    commit = f" at commit `{stamp['commit']}`" if stamp["commit"] else ""
    lines = [
        f"### Arena: `{name}` **{stamp['result']}**",
        "",
        f"{len(stamp['cells'])} of {n_cells} cells recomputed (seed {stamp['seed']}){commit}, "
        f"compared at {stamp['level']} ({stamp['tolerance']:g}), largest difference {stamp['largest_difference']:.1e}. "
        f"Licence `{manifest.licence}`.",
        "",
    ]
    lines += [f"- `{line.replace('`', '')[:200]}`" for line in stamp["differences"][:10]]
    if table is not None:
        groups = table.loc[name].drop(["before", "after"]).dropna()
        shown = ", ".join(f"{group} {rank:.2f}" for group, rank in groups.items())
        lines += [
            "",
            f"Number {_number(name, table)} of {len(table)} by all metrics; rank by group of metrics: {shown}.",
            "",
            "<details><summary>Ranks of all methods on these splits</summary>",
            "",
            "| method | rank before | rank after |",
            "|---|---|---|",
        ]
        for method, row in table.iterrows():
            label = f"**{method}**" if method == name else str(method)
            before = "" if math.isnan(row["before"]) else f"{row['before']:.2f}"
            lines.append(f"| {label} | {before} | {row['after']:.2f} |")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"
