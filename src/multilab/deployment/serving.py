"""HTTP server of a saved model: MLflow's, on 127.0.0.1."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

from multilab.core import canonical_json
from multilab.deployment.errors import DeploymentError
from multilab.deployment.loading import model_folder
from multilab.deployment.registry import example_rows, save_mlflow
from multilab.deployment.saved_model import SavedModel

__all__ = ["HOST", "serve_model"]

HOST = "127.0.0.1"


def serve_model(location: str, port: int, tracking_uri: str | None = None) -> int:
    """Serve a model until the process is stopped; return the exit code of the server.

    Parameters
    ----------
    location : str
        Folder or MLflow address.
    port : int
        0: any free port.
    tracking_uri : str, optional

    Raises
    ------
    DeploymentError
        The model cannot be loaded, or the port is in use.
    """
    port = _free_port(port)
    with tempfile.TemporaryDirectory() as scratch:
        folder = model_folder(location, scratch, tracking_uri)
        model = SavedModel.load(folder)
        packaged = folder.parents[1]  # of an MLflow model, whose artifacts/model this is
        if not (packaged / "MLmodel").is_file():
            packaged = save_mlflow(model, Path(scratch) / "served")
        print(_instructions(location, model, port), flush=True)
        return _run_server(packaged, port)


def _run_server(folder: Path, port: int) -> int:
    """Run `mlflow models serve` and stop it when this process is stopped."""
    arguments = ["models", "serve", "-m", str(folder), "--env-manager", "local", "-h", HOST, "-p", str(port), "-w", "1"]
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": programs, "MLFLOW_DISABLE_TELEMETRY": "true"}
    before = signal.signal(signal.SIGTERM, _stop)
    process = subprocess.Popen([sys.executable, "-m", "mlflow", *arguments], env=environment)
    try:
        return process.wait()
    finally:
        process.terminate()  # the kernel then stops the process that answers
        process.wait()
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _free_port(port: int) -> int:
    if not 0 <= port < 65536:
        raise DeploymentError(f"port {port}: give a number from 0 to 65535")
    try:
        with socket.create_server((HOST, port)) as server:
            return int(server.getsockname()[1])
    except OSError as error:
        raise DeploymentError(
            f"port {port} of {HOST}: {error.strerror}; give another with --port, or 0 for any"
        ) from None


def _instructions(location: str, model: SavedModel, port: int) -> str:
    """Return what to send where, with one row that the model takes; of many columns the first ones."""
    row = example_rows(model)
    shown = row.iloc[:, :6]
    split = {"columns": list(shown.columns), "data": shown.where(shown.notna(), None).to_numpy(dtype=object).tolist()}
    more = f" (and {row.shape[1] - 6} more columns)" if row.shape[1] > 6 else ""
    address = f"http://{HOST}:{port}"
    return (
        f"serving {location} at {address} in a few seconds (health: {address}/ping); Ctrl-C stops it\n"
        f"  curl -H 'Content-Type: application/json' {address}/invocations "
        f"-d '{canonical_json({'dataframe_split': split})}'{more}"
    )
