"""How long ``import multilab``, ``multilab --help``, the stage ``keys`` and a ``dvc repro`` with nothing to do take.

    python benchmarks/startup.py

Whole processes, Python's own start included. The last two run in a temporary copy of the checkout after a first
``dvc repro`` of the quick study (a minute or two; ``--without-repro`` leaves them out).
"""

from __future__ import annotations

import os
import subprocess
import sys

from common import CHECKOUT, Line, arguments, checkout_copy, clock, show


def below(claim: str, seconds: float, limit: float, check: str = "") -> Line:
    """Return the line of a time that has an upper limit."""
    return Line(claim, f"{seconds:.2f} s", f"< {limit:g} s", seconds < limit, check)


def light_commands(repeats: int) -> list[Line]:
    """Time the import and the help."""
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src")}
    python = clock([sys.executable, "-c", "pass"], repeats, env=env)
    imported = clock([sys.executable, "-c", "import multilab"], repeats, env=env)
    helped = clock([sys.executable, "-m", "multilab", "--help"], repeats, env=env)
    return [
        Line("python -c pass", f"{python:.2f} s"),
        below("import multilab", imported, 0.3),
        below("multilab --help", helped, 1.0),
    ]


def in_a_checkout(repeats: int) -> list[Line]:
    """Time a reproduction with nothing to do."""
    with checkout_copy() as (root, env):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["dvc", "repro"], cwd=root, env=env, check=True, **quiet)
        before = (root / "dvc.lock").read_bytes()
        nothing = clock(["dvc", "repro"], repeats, root, env)
        output = subprocess.run(["dvc", "repro"], cwd=root, env=env, check=True, capture_output=True, text=True).stdout
        ran = [line for line in output.splitlines() if line.startswith("Running stage")]
        same = not ran and (root / "dvc.lock").read_bytes() == before
    check = "nothing ran, dvc.lock unchanged" if same else f"DIFFERENT: ran {ran or 'nothing'}, or dvc.lock changed"
    return [below("dvc repro, nothing to do", nothing, 2.0, check)]


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--without-repro", action="store_true", help="leave out what needs a finished pipeline")
    chosen = parser.parse_args(argv)
    lines = light_commands(chosen.repeats)
    if not chosen.without_repro:
        lines += in_a_checkout(chosen.repeats)
    show("Starting", lines, json_path=chosen.json)


if __name__ == "__main__":
    main()
