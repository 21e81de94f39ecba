"""Run every benchmark and write ``benchmarks/results.md``: a table of the claims, then what each script printed.

    MULTILAB_DATA=... python benchmarks/run_all.py

On an idle machine: anything else that runs makes the wall times, and with them the verdicts, meaningless. Some 20
minutes on two cores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common import CHECKOUT, arguments, machine

HERE = Path(__file__).resolve().parent
# run separately: forests.py needs far longer than all others together, the peers of splitters.py minutes, and
# many_labels.py and extreme.py half an hour to an hour
SCRIPTS = (
    *("startup", "mlknn", "reading", "metrics", "ensembles", "mlwse_grid", "elm_path", "elm_tuning", "nystroem"),
    *("selection", "reduction", "decisions", "pipeline", "memory"),
)


def table(results: list[dict[str, Any]]) -> str:
    """Return the claims as a Markdown table."""
    verdicts = {True: "met", False: "**missed**", None: ""}
    rows = ["| claim | found | goal | | same output |", "|---|---|---|---|---|"]
    rows += [
        f"| {one['claim']} | {one['value']} | {one['goal']} | {verdicts[one['met']]} | {one['check']} |"
        for one in results
    ]
    return "\n".join(rows)


def run(name: str, folder: Path) -> str:
    """Run one script and return what it printed; its results go to ``results.json`` in the folder."""
    more = {"pipeline": ["--cells", str(folder / "cells")], "memory": [str(folder / "cells")]}.get(name, [])
    command = [sys.executable, str(HERE / f"{name}.py"), *more, "--json", str(folder / "results.json")]
    done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = done.stdout.replace(str(folder), "...")
    print(output, flush=True)
    return output if done.returncode == 0 else f"{output}\nexit code {done.returncode}\n"


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("scripts", nargs="*", default=list(SCRIPTS), help=f"default: {' '.join(SCRIPTS)}")
    chosen = parser.parse_args(argv)
    began, about = time.time(), machine()
    print(about, flush=True)
    with TemporaryDirectory(prefix="multilab-bench-") as folder:
        outputs = {name: run(name, Path(folder)) for name in chosen.scripts}
        collected = Path(folder) / "results.json"
        results = [json.loads(line) for line in collected.read_text().splitlines()] if collected.is_file() else []
    when = time.strftime("%Y-%m-%d", time.gmtime(began))
    parts = ["# Results of the benchmarks", f"{when}, {(time.time() - began) / 60:.0f} minutes on: {about}."]
    parts += ["Written by `python benchmarks/run_all.py`.", table(results), "## What the scripts printed"]
    parts += [f"### {name}.py\n\n```\n{text.strip()}\n```" for name, text in outputs.items()]
    (HERE / "results.md").write_text("\n\n".join(parts) + "\n")
    failed = [name for name, text in outputs.items() if "\nexit code " in text]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
