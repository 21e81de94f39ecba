"""List what the MLflow store of this folder holds, ask, and delete it: `make clean-mlflow`."""

import shutil
import sys
from pathlib import Path
from typing import Any

from multilab.cells.errors import TrackingError
from multilab.models.mlflow_store import open_client, readable_errors

DATABASE, ARTIFACTS = Path("mlflow.db"), Path("mlartifacts")


def contents() -> list[str]:
    """Return a line for the registered models and for each experiment of the database that has runs."""
    address = f"sqlite:///{DATABASE}"
    client = open_client(address)
    with readable_errors(address):
        models = sorted(model.name for model in client.search_registered_models())
        experiments = {entry.experiment_id: entry.name for entry in client.search_experiments()}
        runs = {name: _count(client, number) for number, name in experiments.items()}
    lines = [f"{len(models)} registered models: {', '.join(models)}"] if models else []
    for name, count in sorted(runs.items()):
        study = Path("conf", "study", f"{name}.yaml").is_file()
        again = f", which `multilab study publish --study {name}` makes again" if study else ""
        if count:
            lines.append(f"{count} runs of the experiment {name}{again}")
    return lines


def _count(client: Any, number: str) -> int:
    count, token = 0, None
    while True:
        page = client.search_runs([number], max_results=1000, page_token=token)
        count, token = count + len(page), page.token
        if not token:
            return count


def main() -> int:
    """Ask and delete; any answer but y keeps everything."""
    if not DATABASE.exists() and not ARTIFACTS.exists():
        print(f"no {DATABASE} here")
        return 0
    try:
        lines = contents() if DATABASE.exists() else []
    except TrackingError as error:
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
