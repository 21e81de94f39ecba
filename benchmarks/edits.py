"""Sixty edits of code and settings, and whether a stored result is ever given for what was edited.

    python benchmarks/edits.py --places                          draw the places and print them, as edits.csv has them
    python benchmarks/edits.py --results FILE [--only 7 12]      try the edits of edits.diff that FILE does not have yet
    python benchmarks/edits.py --results FILE --show             print the counts, and the edits that went wrong

Each edit is made in a copy of the package after the commands of the edit have stored their results. Then the commands
run twice: with these results, and with nothing stored. An edit escapes ("stale") where the printed numbers or the
stored scores differ: an old number was given for new code.

Thirty edits change numbers, thirty change none. An edit of the second sort must not lead to another computation: it
adds no cell to the store. An edit of the first sort in a file of the package may have to raise a version; it is tried
with the raise and without. Without it a stale number must be noticed: by a line about the file, or by the gate.

The places are drawn from the files below, kind by kind, by the digest of the seed and of the name of the place, so that
code which moves or comes later hardly changes the drawing. `PASSED_OVER` names the drawn places at which no edit can be
tried, with the reason; the next one of the kind is taken instead.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

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
        f"{PACKAGE}/cells/fitting.py",
        f"{PACKAGE}/cells/pipeline.py",
        f"{PACKAGE}/cells/seeds.py",
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
        *(f"{PACKAGE}/datasets/{name}.py" for name in ("table_encoder", "feature_columns", "nominal", "vectors")),
        f"{PACKAGE}/methods/mixed_scaler.py",
        f"{PACKAGE}/cells/features.py",
        f"{PACKAGE}/cells/rows.py",
    ),
    "reader": tuple(
        f"{PACKAGE}/datasets/{name}.py"
        for name in (
            "arff",
            "arff_numbers",
            "columns",
            "csv_files",
            "frames",
            "joining",
            "kinds",
            "labels",
            "reading",
            "sparse",
            "table_cells",
            "tables",
        )
    ),
    "splitter": (
        f"{PACKAGE}/model_selection/iterative_stratification/*.py",
        f"{PACKAGE}/model_selection/train_test_splits.py",
        f"{PACKAGE}/model_selection/label_rows.py",
    ),
    "groups": (f"{PACKAGE}/model_selection/group_kfold.py",),
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
    "own method": (f"{OWN}/own_ridge.py", f"{OWN}/own_cut.py", f"{OWN}/conf/method/own_*.yaml"),
    "own helper": (f"{OWN}/own_helpers.py", f"{OWN}/own_metric.py"),
}
"""Kinds of edits and the files that they are drawn from; a file of two kinds belongs to the later one. Files of a user
are in `edits_own`, a folder as ``multilab methods new --outside`` begins it."""

OTHER_PACKAGES = ("networks/tabm", "networks/pretrained", "forests/omikuji", "stacking/distilled", "stacking/portfolio")
"""Methods that need packages, models or results that small sets do not have."""

HARMLESS = ("rename", "move", "type hints", "comment", "faster loop", "order of imports")
"""Edits of Python files that change no number, in turn. Where a place has nothing of the sort (a loop, say), the next
sort that fits is taken. Other files get a comment, or their entries another order."""

PASSED_OVER = {
    "src/multilab/decision/guard.py:guarded_thresholds": "for users of the library: no command calls it",
    "src/multilab/datasets/csv_files.py:_without_quoted": "chooses one of two readers, which read the same",
    "src/multilab/datasets/csv_files.py:_shown_lines": "the text of a message",
    "src/multilab/datasets/synthetic.py:bayes_accuracy": "no command calls it",
}
"""Drawn places at which no edit can be tried, with the reason."""


STORED = (
    *(".cells/*/arrays.npz", ".cells/*/trials.csv", ".cells/.metrics/**/*", ".cells/.encoded/**/*"),
    "data/prepared/**/*",
)
"""Files that hold scores, trials of searches, kept metrics, encoded tables and prepared data with its splits."""


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


@dataclass(frozen=True)
class Outcome:
    """What was found.

    Attributes
    ----------
    number, kind, edit : see `Place`
    outcome : str
        "equal" or "stale": the commands on stored results, compared with the commands on nothing; "refused" if they
        stopped instead. "lost", "failed", "changes numbers" or "changes no number" if the edit is not what it is said
        to be.
    cells : int
        Cells that the edit added to the store.
    without : str
        The outcome without the raise of a version; empty if the edit has none.
    noticed : str
        What noticed the missing raise: a "line" of the commands, or else the "gate".
    seconds : float
        Wall time.
    note : str
        Why it is stale, lost or failed.
    """

    number: int
    kind: str
    edit: str
    outcome: str
    cells: int = 0
    without: str = ""
    noticed: str = ""
    seconds: float = 0.0
    note: str = ""


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
        free = [one for one in candidates(kind) if one not in taken]
        drawn, others = free[: len(changes)], iter(free[len(changes) :])
        for changing, place in zip(changes, drawn, strict=True):
            while ":".join(place) in PASSED_OVER:
                place = next(others)
            file, part = place
            taken.add((file, part))
            edit = "numbers"
            if not changing:
                edit = HARMLESS[harmless % len(HARMLESS)] if file.endswith(".py") else "comment"
                harmless += file.endswith(".py")
            places.append(Place(len(places) + 1, kind, file, part, edit))
    return places


@dataclass(frozen=True)
class Edit:
    """What is changed, and what is run.

    Attributes
    ----------
    number : int
    says : str
        The edit in a sentence.
    commands : list of str
        Commands of the shell.
    raised : str
        What gets the next version: ``RESULTS_VERSION``, a class or a metric of the first file; empty for nothing.
    study : dict
        What differs in the study ``edited``.
    changes : list of (str, str, list of (str, str))
        Of each file its name before and after, and texts with their replacements. A new file has one empty text.
    """

    number: int
    says: str
    commands: list[str] = field(default_factory=list)
    raised: str = ""
    study: dict[str, Any] = field(default_factory=dict)
    changes: list[tuple[str, str, list[tuple[str, str]]]] = field(default_factory=list)


def read_edits(text: str) -> list[Edit]:
    """Return the edits of edits.diff."""
    return [read_edit(part) for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]]


def read_edit(text: str) -> Edit:
    """Return an edit from its part of edits.diff."""
    head, *files = re.split(r"^--- ", text, flags=re.MULTILINE)
    first, *lines = head.strip().splitlines()
    number, _, says = first.partition(" ")
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    given = dict(line.split(": ", 1) for line in lines if not line.startswith("$ "))
    changes = []
    for file in files:
        names, *hunks = re.split(r"^@@\n", file, flags=re.MULTILINE)
        before, _, after = names.strip().partition("\n+++ ")
        replaced = []
        for hunk in hunks:
            old, new = (
                "\n".join(line[1:] for line in hunk.rstrip("\n").splitlines() if line[:1] in (" ", sign))
                for sign in "-+"
            )
            replaced.append((old, new))
        changes.append((before, after or before, replaced))
    return Edit(int(number), says, commands, given.get("raise", ""), yaml.safe_load(given.get("study", "{}")), changes)


class Lost(Exception):
    """The place of an edit is not there any more."""


def apply(edit: Edit, root: Path, raising: bool) -> None:
    """Make an edit in a copy, with or without the raise of a version."""
    for before, after, replaced in edit.changes:
        path = root / before
        text = path.read_text("utf-8") if path.is_file() else ""
        for old, new in replaced:
            if text.count(old) != 1 and (old or text):
                raise Lost(f"{before}: {old!r} is there {text.count(old)} times")
            text = text.replace(old, new) if old else f"{new}\n"
        path.unlink(missing_ok=True)
        (root / after).write_text(text, "utf-8")
    if raising and edit.raised:
        path = root / edit.changes[0][1]
        path.write_text(with_raise(path.read_text("utf-8"), edit.raised), "utf-8")


def with_raise(source: str, name: str) -> str:
    """Return the source of a module in which something has the next version, which is 2 where none was declared.

    ``name`` is ``RESULTS_VERSION``, a class (which has ``results_version``) or a metric (``@metric(..., version=2)``).
    """
    if name == "RESULTS_VERSION":
        block, declared = r"(?s:.*)", r"^RESULTS_VERSION\b.*= \d+"
        end, new = r"\n*\Z", "\n\nRESULTS_VERSION = 2\n"
    elif name[0].isupper():
        block, declared = rf"^class {name}\b.*\n(?:(?:    .*)?\n)*", r"^    results_version\b.*= \d+"
        end, new = r"\n*\Z", "\n\n    results_version = 2\n\n\n"
    else:
        block, declared = rf"^@metric\((?:(?!@).*\n)+?(?=def {name}\b)", r"\bversion=\d+"
        end, new = r",?\s*\)\n\Z", ", version=2)\n"
    found = re.search(block, source, re.MULTILINE)
    if not found:
        raise Lost(f"{name} is not there")
    raised, times = re.subn(
        declared, lambda m: re.sub(r"\d+$", lambda d: str(int(d[0]) + 1), m[0]), found[0], flags=re.MULTILINE
    )
    if not times:
        raised = re.sub(end, new, found[0], count=1)
    return source[: found.start()] + raised + source[found.end() :]


@dataclass(frozen=True)
class Outputs:
    """What the commands of an edit printed and left.

    Attributes
    ----------
    printed : list of str
        Of each command what it printed; of a program other than multilab with a tab in front.
    said : str
        What all of them printed, with warnings and progress.
    failed : str
        The first command that failed, with its output; empty if none did.
    stored : dict of str to str
        Digests of the files that hold scores, kept metrics, trials and prepared data.
    cells : frozenset of str
        Keys of the finished cells.
    """

    printed: list[str]
    said: str
    failed: str
    stored: dict[str, str]
    cells: frozenset[str]

    def difference(self, other: Outputs, commands: list[str]) -> str:
        """Return the first numbers of the other outputs that are not here, or the first file that is not the same.

        What only these outputs have is no difference: tables list older results too, under the name of what they are.
        """
        for command, mine, theirs in zip(
            commands, map(numbers, self.printed), map(numbers, other.printed), strict=True
        ):
            for name, values in theirs.items():
                if mine.get(name) != values:
                    return f"{command}: {' '.join(name)} {mine.get(name)}, not {values}"
        both = sorted(self.stored.keys() & other.stored.keys())
        return next((name for name in both if self.stored[name] != other.stored[name]), "")


def numbers(text: str) -> dict[tuple[str, str], list[str]]:
    """Return the numbers that a command printed, by the first line of their block and by the line without its numbers.

    Numbers are those with at least four decimals, which metrics have and times do not. What begins with a tab, the
    output of a program other than multilab, counts completely.
    """
    if text.startswith("\t"):
        return {("", ""): [text]}
    found: dict[tuple[str, str], list[str]] = {}
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().splitlines() or [""]
        for line in lines:
            if values := re.findall(r"\d*\.\d{4,}(?:e-?\d+)?", line):
                found.setdefault((_name(lines[0]), _name(line)), []).extend(values)
    return found


def _name(line: str) -> str:
    """Return a line without its numbers and keys, and without how many trials of a search were run."""
    return " ".join(re.sub(r"\b[0-9a-f]{12}\b|[\d:-]+\d\d|\d*\.\d+\*?|\d+ run now", "", line).split())


class Lab:
    """A folder with copies of the package and of the user's folder, in which an edit is tried."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.checkout, self.own = root / "checkout", root / "checkout" / OWN
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB")}
        quiet = {"DVC_NO_ANALYTICS": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "OMP_NUM_THREADS": "1"}
        trusted = {"MULTILAB_TRUSTED_TYPES": "own_ridge.OwnRidge"}  # `fit` saves a model of the user's class
        (root / "bin").mkdir()
        (root / "bin/multilab").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m multilab "$@"\n')
        (root / "bin/multilab").chmod(0o755)
        path = os.pathsep.join([str(root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {**kept, **quiet, **trusted, "PATH": path, "PYTHONPATH": str(self.checkout / "src")}
        self.filled: dict[str, Outputs] = {}

    def place(self, edit: Edit, stored: Path | None) -> None:
        """Put the package, and the user's folder as it was stored or with nothing in it, into their places."""
        shutil.rmtree(self.checkout, ignore_errors=True)
        for name in ("src", "conf"):
            shutil.copytree(CHECKOUT / name, self.checkout / name)
        shutil.copytree(stored or CHECKOUT / OWN, self.own, symlinks=True)
        if not stored:
            study = self.own / "conf/study/edited.yaml"
            study.write_text(yaml.safe_dump({**yaml.safe_load(study.read_text("utf-8")), **edit.study}), "utf-8")
            self.shell("python make_tables.py")
            if any(command.startswith("dvc") for command in edit.commands):
                self.shell("git init -q && dvc init -q && multilab study new edited")

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the shell in the user's folder."""
        if re.match("multilab (train|tune) ", command):
            command += " publish=false"  # opening MLflow takes longer than these fits
        return subprocess.run(command, shell=True, cwd=self.own, env=self.env, capture_output=True, text=True)

    def run(self, commands: list[str]) -> Outputs:
        """Run commands, and return what they print and leave."""
        ended = [self.shell(command) for command in commands]
        failed = [
            f"{command}: {(done.stdout + done.stderr).strip()[-300:]}"
            for command, done in zip(commands, ended, strict=True)
            if done.returncode
        ]
        printed = [
            done.stdout if command.startswith("multilab") else f"\t{done.stdout}"
            for command, done in zip(commands, ended, strict=True)
        ]
        said = "".join(done.stdout + done.stderr for done in ended)
        files = [path for pattern in STORED for path in sorted(self.own.glob(pattern)) if path.is_file()]
        stored = {
            path.relative_to(self.own).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
        }
        cells = frozenset(path.parent.name for path in self.own.glob(".cells/*/DONE"))
        return Outputs(printed, said, "".join(failed[:1]), stored, cells)

    def before(self, edit: Edit) -> tuple[Path, Outputs]:
        """Return the user's folder after the commands of an edit, before the edit, and what they printed."""
        name = drawn_order(edit.commands, edit.study, edit.raised != "")[:16]
        if name not in self.filled:
            self.place(edit, None)
            self.filled[name] = self.run(edit.commands)
            if edit.raised and edit.study:
                gate = self.shell("multilab gate --study edited --accept tests/references")
                if gate.returncode:  # then its failure after the edit would mean nothing
                    raise SystemExit(f"edit {edit.number}: the gate fails before it\n{gate.stdout}{gate.stderr}")
            shutil.move(self.own, self.root / name)
        return self.root / name, self.filled[name]

    def after(self, edit: Edit, stored: Path | None, raising: bool = True) -> Outputs:
        """Return what the commands print after an edit, with stored results or without."""
        self.place(edit, stored)
        apply(edit, self.checkout, raising)
        return self.run(edit.commands)

    def tried(self, edit: Edit, place: Place) -> Outcome:
        """Return the outcome of an edit."""
        began = time.monotonic()
        stored, before = self.before(edit)
        try:
            fresh = self.after(edit, None)
        except Lost as reason:
            return Outcome(edit.number, place.kind, place.edit, "lost", note=str(reason))
        if before.failed or fresh.failed:
            return Outcome(edit.number, place.kind, place.edit, "failed", note=before.failed or fresh.failed)
        changes = bool(before.difference(fresh, edit.commands))
        if changes != (place.edit == "numbers"):
            return Outcome(edit.number, place.kind, place.edit, "changes numbers" if changes else "changes no number")
        old = self.after(edit, stored)
        judged, note = judgement(old, fresh, edit.commands)
        outcome = Outcome(edit.number, place.kind, place.edit, judged, len(old.cells - before.cells), note=note)
        if edit.raised:
            unraised = self.after(edit, stored, raising=False)
            without, noticed = judgement(unraised, fresh, edit.commands)[0], ""
            if without != "equal" and told(edit, before, unraised):
                noticed = "line"
            elif without == "stale" and edit.study and self.shell("multilab gate --study edited").returncode:
                noticed = "gate"
            outcome = replace(outcome, without=without, noticed=noticed)
        return replace(outcome, seconds=round(time.monotonic() - began, 1))


def judgement(old: Outputs, fresh: Outputs, commands: list[str]) -> tuple[str, str]:
    """Return the outcome of commands on stored results, compared with the same commands on nothing, and why."""
    if old.failed:
        return "refused", old.failed
    difference = old.difference(fresh, commands)
    return ("stale", difference) if difference else ("equal", "")


def told(edit: Edit, before: Outputs, after: Outputs) -> bool:
    """Return whether the commands say something new that names an edited file, its module or a version."""
    modules = [re.escape(Path(file).stem) for file, *_ in edit.changes]
    said = re.compile(r"[Vv]ersion|" + "|".join(rf"\b{module}\.py\b|\.{module}\b" for module in modules))
    return any(map(said.search, {*after.said.splitlines()} - {*before.said.splitlines()}))


def try_edits(results: Path, only: list[int]) -> None:
    """Try the edits that a file of results does not have, and append a line for each."""
    with (CHECKOUT / "benchmarks/edits.csv").open(encoding="utf-8", newline="") as file:
        places = [Place(int(row.pop("number")), **row) for row in csv.DictReader(file)]
    done = {outcome.number for outcome in read_outcomes(results)}
    edits = read_edits((CHECKOUT / "benchmarks/edits.diff").read_text("utf-8"))
    with TemporaryDirectory(prefix="multilab-edits-") as folder:
        lab = Lab(Path(folder))
        for place, edit in zip(places, edits, strict=True):
            if edit.number in done or (only and edit.number not in only):
                continue
            outcome = lab.tried(edit, place)
            with results.open("a", encoding="utf-8", newline="") as file:
                table = csv.DictWriter(file, [one.name for one in fields(Outcome)], lineterminator="\n")
                if not file.tell():
                    table.writeheader()
                table.writerow(asdict(outcome))
            print(outcome, flush=True)


def read_outcomes(results: Path) -> list[Outcome]:
    """Return the outcomes that a file of results has."""
    if not results.is_file():
        return []
    with results.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = [(int(row.pop("number")), int(row.pop("cells")), float(row.pop("seconds"))) for row in rows]
    return [
        Outcome(number, cells=cells, seconds=seconds, **row)
        for (number, cells, seconds), row in zip(numbers, rows, strict=True)
    ]


def show(outcomes: list[Outcome]) -> None:
    """Print the counts, and the edits that went wrong."""
    for sort in ("numbers", "no number"):
        chosen = [one for one in outcomes if (one.edit == "numbers") == (sort == "numbers")]
        counts = Counter(one.outcome for one in chosen)
        print(f"{len(chosen)} edits that change {sort}:", ", ".join(f"{n} {name}" for name, n in counts.items()))
    raised = [one for one in outcomes if one.without]
    unnoticed = [one for one in raised if one.without == "stale" and not one.noticed]
    print(
        f"{len(raised)} of them also without a raise: {sum(one.without == 'stale' for one in raised)} stale,", end=" "
    )
    print(f"{len(unnoticed)} of these noticed by nothing")
    moved = [one for one in outcomes if one.edit != "numbers" and one.cells]
    print(f"{len(moved)} edits that change no number led to another computation")
    for one in outcomes:
        if one.outcome != "equal" or one in unnoticed or one in moved:
            print(one)


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", action="store_true", help="draw the places and print them as CSV")
    parser.add_argument("--results", type=Path, help="try the edits that this file does not have, and append them")
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of the edits to try")
    parser.add_argument("--show", action="store_true", help="print what the file of results has")
    given = parser.parse_args()
    if given.places:
        table = csv.DictWriter(sys.stdout, [one.name for one in fields(Place)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, draw()))
    elif given.results and given.show:
        show(read_outcomes(given.results))
    elif given.results:
        try_edits(given.results, given.only)
    else:
        parser.error("give --places or --results FILE")


if __name__ == "__main__":
    main()
