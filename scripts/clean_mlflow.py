"""List what the MLflow store of this folder holds, ask, and delete it: `make clean-mlflow`."""

import contextlib
import shutil
import sqlite3
import sys
from pathlib import Path

DATABASE, ARTIFACTS = Path("mlflow.db"), Path("mlartifacts")


def contents(path: Path) -> list[str]:
    """Return a line for the registered models and for each experiment of a database that has runs."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        models = [name for (name,) in database.execute("SELECT name FROM registered_models ORDER BY name")]
        experiments = database.execute(
            "SELECT e.name, COUNT(*) FROM runs r JOIN experiments e ON r.experiment_id = e.experiment_id "
            "WHERE r.lifecycle_stage = 'active' GROUP BY e.name ORDER BY e.name"
        ).fetchall()
    lines = [f"{len(models)} registered models: {', '.join(models)}"] if models else []
    for name, runs in experiments:
        study = Path("conf", "study", f"{name}.yaml").is_file()
        again = f", which `multilab study publish --study {name}` makes again" if study else ""
        lines.append(f"{runs} runs of the experiment {name}{again}")
    return lines


def main() -> int:
    """Ask and delete; any answer but y keeps everything."""
    if not DATABASE.exists() and not ARTIFACTS.exists():
        print(f"no {DATABASE} here")
        return 0
    try:
        lines = contents(DATABASE) if DATABASE.exists() else []
    except sqlite3.Error as error:
        lines = [f"unknown content ({error})"]
    print(f"{DATABASE} and {ARTIFACTS} hold", *(f"  {line}" for line in lines or ["nothing"]), sep="\n")
    print("Delete all of it? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() != "y":
        print("nothing was deleted")
        return 1
    for path in (DATABASE, *Path().glob(f"{DATABASE}?*")):  # also the lock and SQLite's journal
        path.unlink(missing_ok=True)
    shutil.rmtree(ARTIFACTS, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
