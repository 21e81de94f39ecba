"""The gate of declared versions: numbers and defaults that change although no version was raised.

Keys of stored results hold declared versions of the code (see :mod:`multilab.core.versions`), so an edit that changes
numbers without a raise would leave old results valid. This part of the gate computes small cases and compares them with
committed references (for the cases see :mod:`multilab.experiments.version_cases`). It fails where numbers or defaults
differ under the same versions, and names the line to raise; with other versions a reference is written anew.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from multilab.cells.cell import library_versions
from multilab.cells.conf import entrant_names
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import jobs, side_by_side
from multilab.cells.method import load_method
from multilab.cells.progress import ProgressBar
from multilab.core import canonical_json, declared_versions, write_atomically
from multilab.core.shell import short_path
from multilab.core.versions import reached
from multilab.experiments.gate import (
    REFERENCES,
    SAME_VERSIONS,
    Difference,
    differences,
    kept_where_same,
    load_reference,
    tolerance,
    verdict,
)
from multilab.experiments.version_cases import Case, all_cases, only_in, subject_of
from multilab.methods import all_estimators
from multilab.methods.discovery import public_classes

__all__ = ["check_versions"]

NAME = "versions"
"""The reference file is tests/references/versions.json."""


def check_versions(accept: str | None = None, only: Collection[str] = ()) -> int:
    """Compute all cases, compare them with their references and print what differs; return 1 if anything does.

    Parameters
    ----------
    accept : str, optional
        Folder for a new reference file. It is not written if numbers or defaults changed under unchanged versions.
    only : collection of str
        Subjects of cases: ``mlknn``, ``metric macro_f1``. Default: all.

    Raises
    ------
    ExperimentError
        If there is no reference file.
    """
    command = f"multilab gate --accept {REFERENCES}"
    committed = load_reference(NAME)
    if committed is None and not accept:
        raise ExperimentError(f"{REFERENCES}/{NAME}.json is not in this checkout; write it with {command}")
    committed = committed or {"versions": library_versions(), "cases": {}, "defaults": {}}
    with tempfile.TemporaryDirectory(prefix="multilab-gate-") as name, only_in(name) as folder:
        chosen, skipped = all_cases(folder, only)
        work = [(case.name, case.compute) for case in chosen]
        results = dict(ProgressBar("gate: all methods")(side_by_side(_computed, work, jobs()), len(work)))
    if skipped:
        print(f"skipped, since their packages are not installed: {', '.join(skipped)}")
    cases = {case.name: case for case in chosen}
    failed = [f"{name} failed: {result}" for name, result in sorted(results.items()) if isinstance(result, str)]
    numbers = {name: result for name, result in results.items() if isinstance(result, dict)}
    left_out = {*skipped, *({subject_of(name) for name in committed["cases"]} - {*only} if only else ())}
    before = {name: entry for name, entry in committed["cases"].items() if subject_of(name) not in left_out}
    outdated = {
        name
        for name, entry in before.items()
        if name in cases and cases[name].made_of | {"numbers": entry["numbers"]} != entry
    }
    allowed = tolerance(committed["versions"])
    moved = differences(numbers, {name: entry["numbers"] for name, entry in before.items()}, allowed)
    defaults = {cls.__name__: _defaults(cls) for cls in all_estimators()}
    wrong = [
        *failed,
        *_lines_of_moved([difference for difference in moved if difference.cell not in outdated], cases),
        *_lines_of_defaults(defaults, committed["defaults"]),
    ]
    done = f"{len(cases)} cases of {', '.join(only) or 'all methods, metrics and splitters'}"
    # With other versions of the libraries numbers may move without an edit, so moved numbers are accepted.
    if accept and not failed and (not wrong or allowed != SAME_VERSIONS):
        entries = {name: entry for name, entry in committed["cases"].items() if name not in before}
        for name in (name for name, values in numbers.items() if values):
            case_numbers = kept_where_same(numbers[name], before.get(name, {}).get("numbers", {}))
            entries[name] = {**cases[name].made_of, "numbers": case_numbers}
        classes = public_classes() | public_classes("decision")  # also those whose packages are not installed
        others = {name: entry for name, entry in committed["defaults"].items() if name in classes}
        reference = {"cases": entries, "defaults": others | defaults, "versions": library_versions()}
        write_atomically(Path(accept) / f"{NAME}.json", _text(reference))
        return verdict([], f"{Path(accept) / NAME}.json has the numbers of {done}")
    if accept:
        return verdict(wrong, f"no reference of {done} is written")
    optional = {name for name in entrant_names("method") if load_method(name).requires}
    new = {name for name in {*cases} - {*before} if numbers.get(name) and subject_of(name) not in optional}
    for what, names in (
        ("with other versions or settings than their reference", outdated),
        ("without a reference", new),
        ("with a reference, but gone", {*before} - {*cases}),
    ):
        wrong += [f"cases {what}: {_first(names)}; write them with {command}"] if names else []
    return verdict(wrong, f"{done}, compared to {allowed:g}")


def _computed(work: tuple[str, Callable[[], dict[str, float]]]) -> tuple[str, dict[str, float] | str]:
    """Return the name of a case with its numbers, or with the reason why there are none."""
    name, compute = work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return name, {quantity: float(f"{value:.10g}") for quantity, value in compute().items()}
        except Exception as error:  # whatever a method raises
            return name, f"{type(error).__name__}: {error}"


def _first(names: set[str]) -> str:
    """Return the first names, and how many there are."""
    listed = ", ".join(sorted(names)[:4])
    return listed if len(names) <= 4 else f"{listed} and {len(names) - 4} more"


def _text(reference: dict[str, dict[str, Any]]) -> str:
    """Return the text of the reference file: a line per case and per class, so that a diff names them."""
    parts = []
    for part, entries in sorted(reference.items()):
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(entries[name], sort_keys=True)}" for name in sorted(entries)
        )
        parts.append(f" {json.dumps(part)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


# ---------------------------------------------------------------- what is wrong, and which version to raise


def _lines_of_moved(moved: list[Difference], cases: dict[str, Case]) -> Iterator[str]:
    """Yield a line per class whose numbers moved, with the line to raise, and one for a module that they all name.

    A case that names another class whose numbers moved is left to that class: a raise there reaches it.
    """
    worst = {difference.cell: difference for difference in sorted(moved, key=_size)}
    named = {name: _classes_and_functions(cases[name]) for name in worst}
    owners = {cases[name].owner for name in worst}
    roots = {cases[name].owner for name in worst if not (named[name] & owners) - {cases[name].owner}} or owners
    groups = defaultdict(list)
    for name in sorted(worst):
        if not (named[name] & roots) - {cases[name].owner}:
            groups[cases[name].owner].append(name)
    for owner, names in groups.items():
        largest = worst[max(names, key=lambda name: _size(worst[name]))]
        yield f"{owner.__name__}: {len(names)} cases moved under unchanged versions; {largest}; raise {_raise(owner)}"
    if len(groups) > 1:
        yield from _lines_of_common(worst, [name for names in groups.values() for name in names], cases)


def _lines_of_common(moved: Collection[str], explained: list[str], cases: dict[str, Case]) -> Iterator[str]:
    """Yield a line with the modules of what all moved cases name, and the fewest others."""
    named = {name: _classes_and_functions(case) for name, case in cases.items()}
    users = {
        thing: {name for name in cases if thing in named[name]}
        for thing in set.intersection(*(named[name] for name in explained))
    }
    fewest = min(users.values(), key=len, default=set())
    modules = sorted({thing.__module__ for thing, names in users.items() if names == fewest}, reverse=True)
    if modules:
        lines = ", ".join(_raise(sys.modules[module]) for module in modules[:6])
        share = f"{len(fewest & {*moved})} of {len(fewest)} cases that name it moved"
        yield f"if code that these classes share changed ({share}), one raise is enough: {lines}"


def _size(difference: Difference) -> float:
    size = abs(difference.computed - difference.expected) / max(1.0, abs(difference.expected))
    # NaN counts as the largest difference; comparisons with NaN would leave the order open.
    return size if size == size else math.inf


def _classes_and_functions(case: Case) -> set[Any]:
    """Return all that a case names, transitively."""
    return {thing for thing in reached(case.things) if isinstance(thing, type | FunctionType)}


def _raise(thing: Any) -> str:
    """Return the line that raises the version of a class, a metric or a module."""
    path = short_path(Path(inspect.getsourcefile(thing) or ""))
    if isinstance(thing, ModuleType):
        return f"{path}: RESULTS_VERSION = {getattr(thing, 'RESULTS_VERSION', 1) + 1}"
    line = inspect.getsourcelines(thing)[1]
    if isinstance(thing, type):
        return f"{path}:{line}: results_version = {vars(thing).get('results_version', 1) + 1}"
    return f"{path}:{line}: version={thing.results_version + 1}"


def _defaults(cls: type) -> dict[str, Any]:
    """Return the default arguments of a class, and its declared versions."""
    defaults = {}
    for argument in inspect.signature(cls).parameters.values():
        if argument.default is not argument.empty:
            try:
                defaults[argument.name] = json.loads(canonical_json(argument.default))
            except (TypeError, ValueError):  # an object, or NaN
                defaults[argument.name] = repr(argument.default)
    versions = declared_versions([cls])
    return {"defaults": defaults, **({"versions": versions} if versions else {})}


def _lines_of_defaults(classes: dict[str, dict[str, Any]], committed: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield a line per default that changed: keys leave out arguments at their defaults."""
    for name, entry in committed.items():
        current = classes.get(name)
        if current and current.get("versions") == entry.get("versions"):
            for argument, default in entry["defaults"].items():
                if argument not in current["defaults"] or current["defaults"][argument] != default:
                    now = current["defaults"].get(argument, "gone")
                    cls = next(cls for cls in all_estimators() if cls.__name__ == name)
                    yield f"{name}: the default of {argument} was {default!r} and is {now!r}; raise {_raise(cls)}"
