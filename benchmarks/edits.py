"""Sixty edits of code and settings, and whether a stored result is ever given for what was edited.

    python benchmarks/edits.py --places     draw the places of the edits and print them, as edits.csv has them

Each edit is made in a copy of the package whose results are stored already. Commands that print numbers run twice: with
these results, and with nothing stored. An edit escapes where the two differ: an old number was printed for new code.

Thirty edits change numbers, thirty change none. The second kind must not lead to another computation of any result.
The places are drawn from the files below, kind by kind, by the digest of the seed and of the name of the place, so that
code which moves or comes later hardly changes the drawing. `PASSED_OVER` names the drawn places at which no edit can be
tried, with the reason; the next one of the kind is taken instead.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from common import CHECKOUT

SEED, COUNT = 50, 60
PACKAGE, OWN = "src/multilab", "benchmarks/edits_own"

KINDS = {
    "formula": (f"{PACKAGE}/methods/*/[!_]*.py",),
    "helper two imports away": (
        f"{PACKAGE}/methods/_*.py",
        f"{PACKAGE}/methods/[!b_]*.py",
        f"{PACKAGE}/methods/*/_*.py",
    ),
    "solver": (
        *(f"{PACKAGE}/methods/{name}.py" for name in ("solvers/*", "elm/_elastic_net", "stacking/objective")),
        *(
            f"{PACKAGE}/methods/reduction/{name}.py"
            for name in ("_inverse_free", "_regression", "_stiefel", "equations")
        ),
    ),
    "default": (f"{PACKAGE}/methods/*/[!_]*.py", f"{PACKAGE}/decision/[!_]*.py"),
    "base class": (
        f"{PACKAGE}/methods/base.py",
        f"{PACKAGE}/experiments/fitting.py",
        f"{PACKAGE}/experiments/seeds.py",
        f"{PACKAGE}/methods/transformation/_binary.py",
        f"{PACKAGE}/methods/reduction/kernel_reducer.py",
        f"{PACKAGE}/methods/selection/_ranking.py",
        f"{PACKAGE}/decision/_held_out.py",
    ),
    "decision": tuple(
        f"{PACKAGE}/decision/{name}.py" for name in ("thresholds", "tuned_threshold", "expected_f1", "guard")
    ),
    "calibration": (f"{PACKAGE}/decision/calibrated.py",),
    "encoder": (
        *(f"{PACKAGE}/datasets/{name}.py" for name in ("table_encoder", "feature_columns", "encode", "vectors")),
        f"{PACKAGE}/methods/mixed_scaler.py",
        f"{PACKAGE}/experiments/tables.py",
    ),
    "reader": tuple(
        f"{PACKAGE}/datasets/{name}.py"
        for name in (
            "arff",
            "arff_numbers",
            "cells",
            "columns",
            "joining",
            "kinds",
            "labels",
            "reading",
            "sparse",
            "table",
        )
    ),
    "splitter": (
        f"{PACKAGE}/model_selection/iterative_stratification/*.py",
        f"{PACKAGE}/model_selection/train_test_splits.py",
        f"{PACKAGE}/model_selection/label_rows.py",
    ),
    "groups": (f"{PACKAGE}/model_selection/group_kfold.py", f"{PACKAGE}/experiments/groups.py"),
    "generator": (f"{PACKAGE}/datasets/synthetic.py",),
    "search space": ("conf/method/*.yaml",),
    "sampler": (f"{PACKAGE}/experiments/search.py", f"{PACKAGE}/methods/sampling/*.py"),
    "metric": tuple(
        f"{PACKAGE}/metrics/{name}.py"
        for name in (
            "auc",
            "decision_counts",
            "decision_metrics",
            "label_ranks",
            "probability_metrics",
            "ranking_metrics",
        )
    ),
    "paper's metric": (f"{PACKAGE}/papers/*/metrics.py",),
    "protocol": ("conf/protocol/*.yaml",),
    "card": ("conf/dataset/digit-segments.yaml", "conf/dataset/*-toy.yaml", "conf/dataset/scenario?.yaml"),
    "template": tuple(
        f"{PACKAGE}/reports/templates/{name}.html.j2"
        for name in ("result", "ranks", "variants", "control", "facts", "parts", "data", "costs", "overview")
    ),
    "own method": (f"{OWN}/own_ridge.py", f"{OWN}/own_cut.py", f"{OWN}/conf/method/*.yaml"),
    "own helper": (f"{OWN}/own_helpers.py", f"{OWN}/own_metric.py"),
}
"""Kinds of edits and the files that they are drawn from; a file of two kinds belongs to the later one. Files of a user
are in `edits_own`, a folder as ``multilab methods new --outside`` begins it."""

OTHER_PACKAGES = ("networks/tabm", "networks/pretrained", "forests/omikuji", "stacking/distilled", "stacking/portfolio")
"""Methods that need packages, models or results that small sets do not have."""

HARMLESS = ("rename", "move", "type hints", "comment", "faster loop", "order of imports")
"""Edits of Python files that change no number, in turn. Where a place has nothing of the sort (a loop, say), the next
sort that fits is taken. Other files get a comment, or their entries another order."""

PASSED_OVER: dict[str, str] = {}
"""Drawn places at which no edit can be tried, with the reason."""


@dataclass(frozen=True)
class Place:
    """Where an edit is made.

    Attributes
    ----------
    number : int
        From 1.
    kind : str
        One of `KINDS`.
    file, part : str
        The file, from the root of the checkout, and in it a function, a class or an entry; empty for all of it.
    edit : str
        "numbers" if the edit is to change numbers, otherwise one of `HARMLESS`.
    """

    number: int
    kind: str
    file: str
    part: str
    edit: str


def parts_of(kind: str, file: Path) -> Iterator[str]:
    """Yield the parts of a file at which an edit of a kind can be made."""
    text = file.read_text("utf-8")
    if kind == "search space":
        space = re.search(r"^search:\n((?:  .*\n)+)", text, re.MULTILINE)
        yield from (f"search.{name}" for name in re.findall(r"^  (\w+):", space[1] if space else "", re.MULTILINE))
    elif file.suffix != ".py":
        yield ""
    else:
        for node in ast.parse(text).body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            for function in (one for one in inside if isinstance(one, ast.FunctionDef)):
                if kind == "paper's metric":
                    fits = True
                elif kind == "default":
                    fits = function.name == "__init__" and bool(function.args.defaults)
                else:
                    fits = not function.name.startswith("__") and computes(function)
                if fits:
                    yield f"{node.name}.{function.name}" if isinstance(node, ast.ClassDef) else function.name


def computes(function: ast.FunctionDef) -> bool:
    """Return whether a function has arithmetic, or calls NumPy or SciPy."""
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp | ast.AugAssign) and not isinstance(getattr(node, "op", None), ast.BitOr):
            return True
        if isinstance(node, ast.Call) and getattr(getattr(node.func, "value", None), "id", "") in ("np", "sp"):
            return True
    return False


def drawn_order(*words: object) -> str:
    """Return a random text that depends on the seed and some words."""
    return hashlib.sha256(" ".join(map(str, (SEED, *words))).encode()).hexdigest()


def files(kind: str) -> set[Path]:
    """Return the files of a kind."""
    found = (path for pattern in KINDS[kind] for path in CHECKOUT.glob(pattern))
    return {path for path in found if not any(name in path.as_posix() for name in OTHER_PACKAGES)}


def candidates(kind: str) -> list[tuple[str, str]]:
    """Return all places of a kind, file and part, in the order in which they are drawn."""
    later = list(KINDS)[list(KINDS).index(kind) + 1 :]
    of_later = set() if kind == "default" else {path for other in later if other != "default" for path in files(other)}
    found = {
        (path.relative_to(CHECKOUT).as_posix(), part)
        for path in files(kind) - of_later
        for part in parts_of(kind, path)
    }
    return sorted(found, key=lambda place: drawn_order(kind, *place))


def draw() -> list[Place]:
    """Return the places: each kind has one edit of either sort, and as many kinds as the count allows have a third."""
    third = sorted(KINDS, key=drawn_order)[: COUNT - 2 * len(KINDS)]
    taken: set[tuple[str, str]] = set()
    places: list[Place] = []
    harmless = 0
    for kind in KINDS:
        changes = [True, False, *([third.index(kind) % 2 == 0] if kind in third else [])]
        free = (one for one in candidates(kind) if one not in taken and ":".join(one) not in PASSED_OVER)
        for changing, (file, part) in zip(changes, free, strict=False):
            taken.add((file, part))
            edit = "numbers"
            if not changing:
                edit = HARMLESS[harmless % len(HARMLESS)] if file.endswith(".py") else "comment"
                harmless += file.endswith(".py")
            places.append(Place(len(places) + 1, kind, file, part, edit))
    return places


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", action="store_true", help="draw the places and print them as CSV")
    given = parser.parse_args()
    if given.places:
        table = csv.DictWriter(sys.stdout, [field.name for field in fields(Place)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, draw()))


if __name__ == "__main__":
    main()
