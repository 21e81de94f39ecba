"""Run the code blocks of README and docs/getting-started.md in a fresh installation, as a new user does.

    python scripts/readme_blocks.py core [PYTHON [WHEEL]]
    python scripts/readme_blocks.py lab [PYTHON [WHEEL]]

It builds the wheel unless one is given, installs it with PYTHON into a new environment as the line of README does
(``pip install .`` or ``pip install ".[lab]"``), and runs the blocks in new folders outside the clone: those in Python,
and with ``lab`` the lines that call multilab. Lines of ``make``, ``pip`` and ``dvc`` need a clone and are not run. It
fails with the first block that fails.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from pictures import films

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/getting-started.md")
LINES = {"core": "pip install .", "lab": 'pip install ".[lab]"'}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROWS = 300
NEW = 40  # more rows, which no model has seen: new.csv has them without their genres
ALIVE = "http://127.0.0.1:5001/ping"  # of `multilab serve` without --port


def run(*command: str, folder: Path, env: dict[str, str]) -> None:
    """Run a command in a folder; its failure is that of the script."""
    print("$", shlex.join(command), flush=True)
    began = time.monotonic()
    subprocess.run(command, cwd=folder, env=env, check=True, stdin=subprocess.DEVNULL)
    print(f"  done in {time.monotonic() - began:.0f} s", flush=True)


def serve(command: list[str], folder: Path, env: dict[str, str]) -> None:
    """Start a server, wait until it answers, and stop it."""
    print("$", shlex.join(command), flush=True)
    with subprocess.Popen(command, cwd=folder, env=env) as server:
        try:
            for _ in range(120):
                if server.poll() is not None:
                    raise SystemExit(f"the server ended with code {server.returncode}")
                try:
                    with urllib.request.urlopen(ALIVE, timeout=5):
                        return
                except OSError:  # not yet there, or slow to answer
                    time.sleep(1)
            raise SystemExit("the server does not answer")
        finally:
            server.terminate()


def installed(kind: str, python: str, folder: Path, wheel: str | None) -> dict[str, str]:
    """Install the wheel into a new environment; return the environment variables in which its programs are found."""
    if not any(line.partition("#")[0].strip() == LINES[kind] for line in (ROOT / "README.md").read_text().splitlines()):
        raise SystemExit(f"README has no line {LINES[kind]!r}")
    own = ("PYTHON", "MULTILAB", "MLFLOW", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    env |= {"DVC_NO_ANALYTICS": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    run(python, "-m", "venv", str(folder / "venv"), folder=folder, env=env)
    env["PATH"] = f"{folder / 'venv' / 'bin'}{os.pathsep}{env['PATH']}"
    if not wheel:
        run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", str(ROOT), folder=folder, env=env)
        (wheel,) = map(str, (folder / "dist").glob("*.whl"))
    extra = LINES[kind].split()[-1].strip('"').removeprefix(".")
    run("pip", "install", "--quiet", f"{Path(wheel).resolve()}{extra}", folder=folder, env=env)
    return env


def run_blocks(page: Path, kind: str, folder: Path, env: dict[str, str]) -> int:
    """Run the blocks of a page one after the other in a new folder; return how many."""
    folder.mkdir()
    films(folder / "films.csv", ROWS + NEW)
    header, *rows = (folder / "films.csv").read_text(encoding="utf-8").splitlines()
    new = [line.rpartition(",")[0] for line in (header, *rows[ROWS:])]
    for name, lines in (("films", [header, *rows[:ROWS]]), ("new", new)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    count = 0
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            print(text, flush=True)
            run("python", "-c", text, folder=folder, env=env)
            count += 1
            continue
        lines = [line.removeprefix("$ ") for line in text.splitlines()]
        commands = [shlex.split(line, comments=True) for line in lines if line.startswith("multilab ")]
        for command in commands if kind == "lab" else ():
            if command[1] == "serve":
                serve(command, folder, env)
            else:
                run(*command, folder=folder, env=env)
            count += 1
    return count


def main(kind: str, python: str = sys.executable, wheel: str | None = None) -> None:
    """Install, and run the blocks of all pages."""
    with tempfile.TemporaryDirectory(prefix="multilab-blocks-") as name:
        env = installed(kind, python, Path(name), wheel)
        for page in PAGES:
            if not (count := run_blocks(ROOT / page, kind, Path(name) / Path(page).stem, env)):
                raise SystemExit(f"{page} has no block to run")
            print(f"{page}: {count} blocks and lines run", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4) or sys.argv[1] not in LINES:
        raise SystemExit(f"Usage: python {sys.argv[0]} core|lab [PYTHON [WHEEL]]")
    main(*sys.argv[1:])
