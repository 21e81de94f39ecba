"""What the benchmarks share: fair timing, the peers, copies of the checkout, and how a result is printed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import site
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["CHECKOUT", "Line", "Peers", "arguments", "checkout_copy", "clock", "machine", "peers", "race", "show"]

CHECKOUT = Path(__file__).resolve().parents[1]
PEERS = Path(__file__).resolve().parent / ".venv"


@dataclass(frozen=True)
class Line:
    """One claim and what was found.

    Attributes
    ----------
    claim : str
        What is measured.
    value : str
        What was found, with its unit.
    goal : str
        Empty when there is none.
    met : bool or None
        None when there is no goal.
    check : str
        The outcome of the identical-output check, empty when there is nothing to compare.
    """

    claim: str
    value: str
    goal: str = ""
    met: bool | None = None
    check: str = ""


class Peers(RuntimeError):
    """A peer is not installed."""


def arguments(text: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script: its docstring and ``--json``."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="append the results to this file, one JSON object per line")
    return parser


def machine() -> str:
    """Return processor, cores, system and the versions that decide speed."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":", 1)[1].strip() if names else processor
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{processor}, {cores} cores{load}; Python {platform.python_version()}, {libraries}"


def peers(*names: str) -> dict[str, str]:
    """Make the peers importable and return their versions.

    They live in ``benchmarks/.venv`` (or the folder named by ``MULTILAB_PEERS``), a virtual environment of their own
    whose packages come last on the path: NumPy and scikit-learn are the same for everyone.

    Raises
    ------
    Peers
        One is not there.
    """
    for folder in sorted(Path(os.environ.get("MULTILAB_PEERS", PEERS)).glob("lib/python*/site-packages")):
        site.addsitedir(str(folder))
    try:
        return {name: version(name) for name in names}
    except ModuleNotFoundError as error:
        raise Peers(f"{error}; benchmarks/README.md says how to install the peers") from None


def race(runners: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Time runners side by side on one thread, so that a change in the machine's speed meets all of them.

    Parameters
    ----------
    runners : dict
        What to call, by name.
    repeats : int
        Timed rounds, after one that is not timed where there are at least three.

    Returns
    -------
    medians : dict of str to float
        Wall seconds.
    outputs : dict
        What each returned last.
    """
    from threadpoolctl import threadpool_limits

    taken: dict[str, list[float]] = {name: [] for name in runners}
    outputs: dict[str, Any] = {}
    with threadpool_limits(1):
        for round_ in range(repeats + (repeats >= 3)):
            for name, run in runners.items():
                began = time.perf_counter()
                outputs[name] = run()
                if round_ or repeats < 3:
                    taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}, outputs


def clock(command: Sequence[str], repeats: int, cwd: Path | None = None, env: dict[str, str] | None = None) -> float:
    """Return the median wall seconds of a command, which must succeed; the first of at least three is not counted."""
    taken = []
    for _ in range(repeats + (repeats >= 3)):
        began = time.perf_counter()
        done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        taken.append(time.perf_counter() - began)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} exited {done.returncode}:\n{done.stdout}{done.stderr}")
    return statistics.median(taken[repeats >= 3 :])


@contextmanager
def checkout_copy() -> Iterator[tuple[Path, dict[str, str]]]:
    """Give a repository of its own with the checkout's present files, and the environment to work in it.

    There ``multilab`` runs the copy's code with this Python and its packages; cells and data start empty.
    """
    with TemporaryDirectory(prefix="multilab-bench-") as folder:
        root = Path(folder) / "copy"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT,
            capture_output=True,
            check=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (CHECKOUT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, root / name)
        programs = Path(folder) / "bin"
        programs.mkdir()
        (programs / "multilab").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m multilab "$@"\n')
        (programs / "multilab").chmod(0o755)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MULTILAB") or k == "MULTILAB_DATA"}
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        quiet = {"DVC_NO_ANALYTICS": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
        env = {**kept, **quiet, "PATH": path, "PYTHONPATH": str(root / "src")}
        author = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org"]
        for arguments in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "copy"]):
            subprocess.run(["git", *arguments], cwd=root, check=True, env=env, capture_output=True)
        if not (root / ".dvc").is_dir():
            subprocess.run(["dvc", "init", "-q"], cwd=root, check=True, env=env)
        yield root, env


def show(title: str, lines: Sequence[Line], notes: Sequence[str] = (), json_path: Path | None = None) -> None:
    """Print the results of a script, and append them to a file when one is named.

    Raises
    ------
    SystemExit
        If an output differs from the peer's: then no ratio means anything.
    """
    print(title)
    for note in notes:
        print(f"  {note}")
    for line in lines:
        verdict = "" if line.met is None else f"   goal {line.goal}: {'met' if line.met else 'MISSED'}"
        print(f"  {line.claim}: {line.value}{verdict}" + (f"   [{line.check}]" if line.check else ""))
    if json_path:
        with json_path.open("a") as stream:
            stream.writelines(json.dumps({"title": title, **asdict(line)}, default=bool) + "\n" for line in lines)
    if any(line.check.startswith("DIFFERENT") for line in lines):
        raise SystemExit(f"{title}: outputs differ")
