"""Print the addresses of the runs and serve the MLflow UI: `make ui PORT=5001`.

MLflow opens an experiment on its traces, which are empty here; these addresses open the runs.
"""

import os
import socket
import sys
from pathlib import Path

from multilab.models.mlflow_store import open_client, runs_address, tracking, without_password


def main(port: str = "5000") -> int:
    """Print the addresses, and turn into the server unless the store is one."""
    uri = tracking()["uri"]
    remote = uri.startswith("http")
    server = without_password(uri).rstrip("/") if remote else f"http://127.0.0.1:{port}"
    with socket.socket() as probe:
        if not remote and probe.connect_ex(("127.0.0.1", int(port))) == 0:
            print(f"port {port} is in use; choose another one: make ui PORT={int(port) + 1}", file=sys.stderr)
            return 2
    experiments = [entry for entry in open_client(uri).search_experiments() if entry.name != "Default"]
    for entry in sorted(experiments, key=lambda entry: entry.name):
        print(f"{entry.name:<20} {runs_address(entry.experiment_id, server)}")
    if not experiments:
        print(f"{server} has no runs yet; `multilab train dataset=emotions method=mlknn` makes one")
    print(f"registered models    {server}/#/models", flush=True)
    if remote:
        return 0
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # saves a dozen processes of its assistant
    mlflow = str(Path(sys.executable).with_name("mlflow"))
    os.execv(mlflow, [mlflow, "ui", "--backend-store-uri", uri, "--workers", "1", "--port", port])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
