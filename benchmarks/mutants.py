"""Small faults put into the source, and whether a test notices: random mutants, drawn once and kept in mutants.csv.

    python benchmarks/mutants.py record [tests/metrics ...]   which function is called by which test (twenty minutes)
    python benchmarks/mutants.py draw --count 150 --seed 33   add new mutants to the list
    python benchmarks/mutants.py draw --lost --seed 34        put a new mutant in the place of each lost one
    python benchmarks/mutants.py run [--survivors]            try those without an outcome, or the survivors again
    python benchmarks/mutants.py control                      the tests that killed pass where nothing is changed
    python benchmarks/mutants.py show

Mutants run in a copy of the checkout, one after the other; a run that is stopped continues. A mutant is first tried on
the test that killed it before, then on the fastest tests that call the function, then on a minute of the others. It is
killed by a failure, or by needing far more CPU time than the tests did. The function and the text of the line say where
a mutant belongs, so that it is found again after functions have moved to other files.
"""

# ruff: noqa: D102 (visitors of syntax are named by their nodes)

from __future__ import annotations

import argparse
import ast
import csv
import fcntl
import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from common import CHECKOUT, checkout_copy

LIST = CHECKOUT / "benchmarks" / "mutants.csv"
CALLS = CHECKOUT / "benchmarks" / "data" / "calls.jsonl"
PACKAGES = (*("methods", "metrics", "decision", "model_selection", "statistics", "printed", "models", "experiments"),)
LEAST, FILES, FIRST, WIDE = 8, 4, 30, 60.0
"""Mutants per package at least; files and tests tried first; CPU seconds of tests tried then."""
UNKNOWN, NO_TEST = 120.0, 4
"""CPU seconds for a test that was not recorded; pytest's exit code where a named test does not exist."""
ENDS = {-1: "wall time", -signal.SIGXCPU: "CPU time", -signal.SIGKILL: "CPU time", -signal.SIGSEGV: "a crash"}
READS_SOURCE = "tests/project/test_doctests.py::test_documented_defaults_are_those_of_the_signatures"
COMPARED = {
    **{ast.Lt: ("<", ("<=", ">=")), ast.LtE: ("<=", ("<", ">")), ast.Gt: (">", (">=", "<="))},
    **{ast.GtE: (">=", (">", "<")), ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",))},
    **{ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",))},
    **{ast.In: ("in", ("not in",)), ast.NotIn: ("not in", ("in",))},
}
COMPUTED = {
    **{ast.Add: ("+", ("-",)), ast.Sub: ("-", ("+",)), ast.Mult: ("*", ("/",)), ast.Div: ("/", ("*",))},
    **{ast.FloorDiv: ("//", ("/",)), ast.Mod: ("%", ("*",)), ast.BitAnd: ("&", ("|",)), ast.BitOr: ("|", ("&",))},
}
JOINED = {ast.And: ("and", ("or",)), ast.Or: ("or", ("and",))}
PAIRS = (
    *(("min", "max"), ("any", "all"), ("argmin", "argmax"), ("minimum", "maximum"), ("floor", "ceil")),
    *(("zeros", "ones"), ("nanmin", "nanmax"), ("zeros_like", "ones_like")),
)
SWAPPED = {a: b for one, other in PAIRS for a, b in ((one, other), (other, one))}
SAID = {"warn", "debug", "info", "warning", "error", "print", "echo"}


@dataclass(frozen=True)
class Mutant:
    """A changed line.

    Attributes
    ----------
    package, module, function : str
        Where the line was when the mutant was drawn; the function is the outermost one, ``Class.method`` or
        ``function``, the class of a line between methods, or empty.
    original, mutated : str
        The line without its indentation.
    nth : int
        Which of the equal lines of the function, from 0.
    origin : str
        The seed, or who proposed it.
    outcome : str
        "", "killed", "survived", or "lost" if there is no such line any more.
    killed_by : str
        The test that failed.
    reason : str
        Written by hand, for those that survived at first: "test: ..." (one was written), "equivalent: ..." (nothing
        can be observed) or "harmless: ..." (a message, a limit).
    """

    package: str
    module: str
    function: str
    original: str
    mutated: str
    nth: int = 0
    origin: str = ""
    outcome: str = ""
    killed_by: str = ""
    reason: str = ""

    @property
    def settled(self) -> bool:
        """Whether it is known why it survives."""
        return self.reason.startswith(("equivalent", "harmless"))

    @property
    def kind(self) -> str:
        """The outcome in a word, and that of the first run where it was another."""
        return f"{self.outcome or 'open'} {self.reason.partition(':')[0]}".strip()


class Finder(ast.NodeVisitor):
    """Find what can be changed in a file."""

    def __init__(self, source: str) -> None:
        self.lines = source.encode().split(b"\n")
        self.scope: list[str] = []
        self.inside = 0
        self.axes: dict[int, tuple[int, ...]] = {}
        self.found: list[tuple[str, int, int, int, str]] = []  # function, line, columns in bytes, new text
        self.statements: set[int] = set()
        self.spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.visit(ast.parse(source))

    def change(self, line: int, start: int, end: int, text: str) -> None:
        self.found.append((".".join(self.scope), line, start, end, text))

    def between(self, left: ast.expr, right: ast.expr, old: str, new: tuple[str, ...]) -> None:
        """Replace the operator between two expressions of one line."""
        if left.end_lineno == right.lineno and left.end_col_offset is not None:
            text = self.lines[right.lineno - 1][left.end_col_offset : right.col_offset].decode()
            if match := re.search(rf"(?<![a-z]){re.escape(old)}(?![a-z])", text):
                for other in new:
                    start = left.end_col_offset + match.start()
                    self.change(right.lineno, start, start + len(old), other)

    def dropped(self, node: ast.stmt) -> None:
        if node.lineno == node.end_lineno and node.end_col_offset is not None:
            self.change(node.lineno, node.col_offset, node.end_col_offset, "pass")

    def visit(self, node: ast.AST) -> None:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and not docstring:
            self.statements.add(node.lineno)
        if not docstring:
            super().visit(node)

    def scoped(self, node: Any, parts: list[Any]) -> None:
        outer = self.inside
        if not outer:
            self.scope.append(node.name)
            self.spans[".".join(self.scope)].append((node.lineno, node.end_lineno))
        self.inside = outer + (not isinstance(node, ast.ClassDef))
        for part in filter(None, parts):
            self.visit(part)
        self.inside = outer
        if not outer:
            self.scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scoped(node, [*node.args.defaults, *node.args.kw_defaults, *node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scoped(node, node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets):
            return
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}:
            self.dropped(node)  # the name has a value already
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.dropped(node)
        if isinstance(node.op, ast.Add):
            self.between(node.target, node.value, "+=", ("-=",))
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in SAID:
            self.dropped(node) if called else None
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.dropped(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.change(node.lineno, node.col_offset, node.col_offset + 5, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.change(node.lineno, node.col_offset, node.col_offset + 8, "break")

    def visit_If(self, node: ast.If) -> None:
        if getattr(node.test, "id", "") != "TYPE_CHECKING":
            self.generic_visit(node)

    def left_out(self, node: ast.AST) -> None:
        """Pass over messages, and checks that are there for the type checker."""

    visit_JoinedStr = visit_Assert = left_out

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            self.between(left, right, *COMPARED[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in COMPUTED and not any(map(is_text, (node.left, node.right))):
            self.between(node.left, node.right, *COMPUTED[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, *JOINED[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.change(node.lineno, node.col_offset, node.col_offset + (4 if isinstance(node.op, ast.Not) else 1), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value, end = node.value, node.end_col_offset or 0
        if isinstance(value, bool):
            self.change(node.lineno, node.col_offset, end, str(not value))
        elif isinstance(value, int):
            for other in self.axes.get(id(node), (value + 1, value - 1)):
                self.change(node.lineno, node.col_offset, end, str(other) if other >= 0 else f"({other})")
        elif isinstance(value, float):
            self.change(node.lineno, node.col_offset, end, repr(2 * value if value else 1.0))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if getattr(node.value, "attr", "") == "shape":
            self.other_axis(node.slice)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == "axis":
            self.other_axis(node.value)
        self.generic_visit(node)

    def other_axis(self, node: ast.expr) -> None:
        """Let an axis become one that a matrix has: any other is noticed by whatever test there is."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            self.axes[id(node)] = (1 - node.value,)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SWAPPED and node.func.end_col_offset and node.func.end_lineno:
            end = node.func.end_col_offset
            self.change(node.func.end_lineno, end - len(name), end, SWAPPED[name])
        self.generic_visit(node)

    def changes(self) -> list[tuple[str, int, str, str]]:
        """Return function, number of the line from 0, and the line before and after, of all possible mutants."""
        return [
            (name, line - 1, old.strip().decode(), (old[:start] + new.encode() + old[end:]).strip().decode())
            for name, line, start, end, new in self.found
            for old in [self.lines[line - 1]]
        ]

    def equal_lines(self, function: str, text: str) -> list[int]:
        """Return the numbers, from 0, of the lines of a function that have this text."""
        spans = self.spans.get(function, [] if function else [(1, len(self.lines))])
        return [n for low, high in spans for n in range(low - 1, high) if self.lines[n].strip() == text.encode()]


def is_text(node: ast.expr) -> bool:
    """Return whether an operand is a string: of a path, say."""
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def draw(count: int, seed: str) -> list[Mutant]:
    """Return random mutants: packages by their statements, lines alike, at most one per line."""
    random_numbers = random.Random(seed)
    lines: dict[str, dict[tuple[str, int], list[Mutant]]] = {}
    sizes = {}
    for package in PACKAGES:
        lines[package], sizes[package] = defaultdict(list), 0
        for path in sorted((CHECKOUT / "src/multilab" / package).rglob("*.py")):
            found = Finder(path.read_text("utf-8"))
            sizes[package] += len(found.statements)
            module = path.relative_to(CHECKOUT / "src").as_posix()
            for function, number, original, mutated in found.changes():
                nth = found.equal_lines(function, original).index(number)
                lines[package][module, number].append(Mutant(package, module, function, original, mutated, nth, seed))
    shares = {package: max(LEAST, round(count * size / sum(sizes.values()))) for package, size in sizes.items()}
    shares[max(shares, key=lambda package: shares[package])] -= sum(shares.values()) - count
    return [
        random_numbers.choice(lines[package][line])
        for package in PACKAGES
        for line in sorted(random_numbers.sample(sorted(lines[package]), shares[package]))
    ]


def placed(mutant: Mutant, root: Path) -> tuple[Path, int] | None:
    """Return the file and the line, from 0, of a mutant: where it was drawn, or wherever its function is now."""
    named = root / "src" / mutant.module
    elsewhere = sorted(
        (root / "src" / "multilab").rglob("*.py"), key=lambda path: f"/{mutant.package}/" not in str(path)
    )
    for path in [*([named] if named.is_file() else []), *(elsewhere if mutant.function else [])]:
        source = path.read_text("utf-8")
        if mutant.original in source:
            found = Finder(source).equal_lines(mutant.function, mutant.original)
            if found:
                return path, found[min(mutant.nth, len(found) - 1)]
    return None


class Recorder:
    """Write down which functions of the package each test calls, and its CPU seconds."""

    def __init__(self, source: str, target: Path) -> None:
        self.source, self.target = source, target

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        seen: set[Any] = set()
        began = time.process_time()

        def note(frame: Any, event: str, _: Any) -> None:
            if event == "call":
                seen.add(frame.f_code)

        sys.setprofile(note)
        runtestprotocol(item, nextitem=nextitem)
        sys.setprofile(None)
        own = (code for code in seen if code.co_filename.startswith(self.source))
        called = sorted({f"{code.co_filename[len(self.source) :]}:{code.co_qualname}" for code in own})
        with self.target.open("a", encoding="utf-8") as stream:
            print(json.dumps([item.nodeid, round(time.process_time() - began, 3), called]), file=stream)
        return True


def tested(root: Path, env: dict[str, str], arguments: list[str], seconds: float, *plugins: Any) -> tuple[int, str]:
    """Return pytest's exit code and output; in a fork, which has imported what takes longest to import."""
    import pytest

    log = root.parent / "pytest.log"
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, resource.RLIM_INFINITY))  # tests set limits too
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os.chdir(root)
        os.environ.clear()
        os.environ.update(env)
        sys.path[0] = str(root / "src")
        code = pytest.main(["-p", "no:cacheprovider", "-q", "--no-header", *arguments], list(plugins))
        sys.stdout.flush()
        os._exit(int(code))
    deadline, code = time.monotonic() + 60 + 10 * seconds, -1
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    if ended[0]:
        code = os.waitstatus_to_exitcode(ended[1])
    with suppress(ProcessLookupError):
        os.killpg(child, 9)  # and with it what the tests have started
    if not ended[0]:
        os.waitpid(child, 0)
    return code, log.read_text("utf-8", errors="replace")


def calls() -> dict[str, tuple[float, set[str]]]:
    """Return the CPU seconds and the called functions of each recorded test; of two records the later."""
    table: dict[str, tuple[float, set[str]]] = {}
    for line in CALLS.read_text("utf-8").splitlines() if CALLS.is_file() else []:
        test, seconds, called = json.loads(line)
        table[test] = seconds, set(called)
    return table


def chosen(mutant: Mutant, path: Path, known: dict[str, tuple[float, set[str]]]) -> list[list[str]]:
    """Return the tests to try first, the fastest of a few files in turns, and others."""
    module = f"{path.as_posix().split('/src/', 1)[1]}:"
    prefix = module + mutant.function
    callers = [
        test
        for test, (_, called) in known.items()
        if any(
            name == prefix or name.startswith(f"{prefix}.") or (not mutant.function and name.startswith(module))
            for name in called
        )
    ]
    callers = callers or [
        test for test, (_, called) in known.items() if any(name.startswith(module) for name in called)
    ]
    callers = callers or [test for test in known if test.startswith(f"tests/{mutant.package}/")]
    sizes, files = Counter(test.split("::")[0] for test in known), defaultdict(list)
    for test in sorted(callers, key=lambda test: known[test][0]):
        files[test.split("::")[0]].append(test)
    own = f"tests/{mutant.package}/"
    # a file most tests of which call the function is about it
    ranked = sorted(files, key=lambda file: (not file.startswith(own), -len(files[file]) / sizes[file]))
    turns = zip_longest(*(files[file] for file in ranked[:FILES]))
    first = [test for turn in turns for test in turn if test][:FIRST]
    rest, spent = [], 0.0
    for test in (test for file in ranked for test in files[file]):
        if test not in first and spent + known[test][0] <= WIDE:
            rest.append(test)
            spent += known[test][0]
    in_signature = re.match(r"def |\w+: .* = ", mutant.original)
    return [[*([READS_SOURCE] if in_signature else []), *first], rest]


def tried(mutant: Mutant, root: Path, env: dict[str, str], known: dict[str, tuple[float, set[str]]]) -> Mutant:
    """Return the mutant with its outcome."""
    place = placed(mutant, root)
    if place is None:
        return replace(mutant, outcome="lost")
    path, number = place
    source, stat = path.read_bytes(), path.stat()
    lines = source.split(b"\n")
    lines[number] = lines[number].replace(mutant.original.encode(), mutant.mutated.encode())
    path.write_bytes(b"\n".join(lines))
    try:
        before = [mutant.killed_by] if "::" in mutant.killed_by else []
        for tests in (before, *chosen(mutant, path, known)):
            if not tests:
                continue
            seconds = 20 + sum(4 * known[test][0] if test in known else UNKNOWN for test in tests)
            code, output = tested(root, env, ["-x", *tests], seconds)
            if code == NO_TEST and tests is before:
                continue  # it has another name now
            if "(no match in any of" in output:
                raise SystemExit(f"{mutant.module}: tests have other names than when they were recorded:\n{output}")
            if code:
                failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
                return replace(
                    mutant, outcome="killed", killed_by=failed[1] if failed else ENDS.get(code, f"exit code {code}")
                )
        if not known:
            raise SystemExit(f"{mutant.module}: {mutant.mutated!r} is not killed by the test of before: record first")
    finally:
        path.write_bytes(source)
        os.utime(path, (stat.st_atime, stat.st_mtime))  # that of the compiled file
    return replace(mutant, outcome="survived", killed_by="")


def read() -> list[Mutant]:
    """Return the list."""
    if not LIST.is_file():
        return []
    with LIST.open(encoding="utf-8", newline="") as stream:
        return [Mutant(**{**row, "nth": int(row["nth"])}) for row in csv.DictReader(stream)]  # type: ignore[arg-type]


def write(mutants: list[Mutant]) -> None:
    """Replace the list."""
    with (partial := LIST.with_suffix(".tmp")).open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, [field.name for field in fields(Mutant)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, mutants))
    partial.replace(LIST)


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "draw", "run", "control", "show"))
    parser.add_argument(
        "tests", nargs="*", help="what to record; by default the tests of the packages and the examples"
    )
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", default="33")
    parser.add_argument("--lost", action="store_true", help="replace those that were lost, package by package")
    parser.add_argument("--packages", nargs="*", default=PACKAGES, help="try the mutants of these only")
    parser.add_argument("--part", default="1/1", help="2/3 tries the second of every three")
    parser.add_argument("--survivors", action="store_true", help="try again those that survived or were lost")
    given = parser.parse_args()
    mutants = read()
    if given.command == "draw":
        known = {(one.function, one.original, one.nth, one.mutated) for one in mutants}
        new = [
            one
            for one in draw(given.count, given.seed)
            if (one.function, one.original, one.nth, one.mutated) not in known
        ]
        if given.lost:
            random.Random(given.seed).shuffle(new)
            mutants = [
                new.pop(next(i for i, other in enumerate(new) if other.package == one.package))
                if one.outcome == "lost"
                else one
                for one in mutants
            ]
        write(mutants if given.lost else mutants + new)
    elif given.command == "show":
        for package in (*PACKAGES, ""):
            counts = Counter(one.kind for one in mutants if package in ("", one.package))
            print(f"{package or 'all':16}", *(f"{name} {counts[name]:3}" for name in sorted(counts)), sep="  ")
        for one in mutants:
            if one.outcome in ("survived", "lost"):
                print(f"\n{one.outcome}: {one.module} {one.function}\n- {one.original}\n+ {one.mutated}\n{one.reason}")
    else:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = "1"  # before NumPy: threads do not survive a fork
        import_first()
        with checkout_copy() as (root, env):
            CALLS.parent.mkdir(exist_ok=True)
            if given.command == "record":
                tests = given.tests or [*(f"tests/{package}" for package in PACKAGES), "tests/project/test_doctests.py"]
                known = CALLS.read_text("utf-8").splitlines(keepends=True) if CALLS.is_file() else []
                others = [line for line in known if not json.loads(line)[0].startswith(tuple(tests))]
                CALLS.write_text("".join(others), "utf-8")
                print(tested(root, env, tests, 7200, Recorder(f"{root}/src/", CALLS))[1])
                return
            outcomes = ("survived", "lost") if given.survivors else ("",)
            if given.command == "control":
                killers = sorted({one.killed_by for one in mutants if "::" in one.killed_by})
                print(tested(root, env, killers, 3600)[1])
                return
            part, parts = map(int, given.part.split("/"))
            chosen_ones = [one for one in mutants[part - 1 :: parts] if one.package in given.packages]
            for one in (one for one in chosen_ones if one.outcome in outcomes and not one.settled):
                if one not in read():
                    continue  # another program has tried it
                after = tried(one, root, env, calls())
                with CALLS.open("a") as handle:  # several programs may run, each with its packages
                    fcntl.flock(handle, fcntl.LOCK_EX)
                    write([after if entry == one else entry for entry in read()])
                print(
                    f"{after.outcome:8} {after.module}:{after.function} [{after.mutated}] {after.killed_by}", flush=True
                )


def import_first() -> None:
    """Import what takes longest, once for all forks; nothing of the package."""
    for name in ("pytest", "hypothesis", "pandas", "scipy.stats", "sklearn.ensemble", "sklearn.pipeline", "hydra"):
        __import__(name)


if __name__ == "__main__":
    main()
