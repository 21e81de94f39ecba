"""HTTP server of a saved model on 127.0.0.1, with the requests and replies of MLflow's scoring server.

The model in memory, which was loaded and checked, answers: nothing is read from its folder afterwards. MLflow's own
server would load the folder again and run whatever its ``MLmodel`` file names.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shlex
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import mlflow
import pandas as pd
import uvicorn
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import scoring_server
from pyarrow import parquet

from multilab.core import MultilabError, canonical_json, parse_json
from multilab.core.messages import printable
from multilab.core.text import excerpt
from multilab.models.errors import DeploymentError
from multilab.models.loading import load_model
from multilab.models.saved_model import SavedModel

__all__ = ["HOST", "ModelServer", "serve_model"]

HOST = "127.0.0.1"
MEGABYTES = 16
"""Limit of a request's body: this many are decoded in seconds, and hold some 10,000 rows of 100 columns."""

_BODY_SECONDS = 60.0  # a slow client must not hold a connection forever
_MESSAGE_CHARACTERS = 300  # of an error: it may repeat text of the request
_INDEX_COLUMNS = 8  # more than the levels of any index, which pandas writes as columns
_FEW_COLUMNS = 6  # a request with more columns does not fit a line of the terminal and goes to a file


def serve_model(
    location: str,
    port: int,
    tracking_uri: str | None = None,
    megabytes: float = MEGABYTES,
    strict: bool = False,
) -> int:
    """Serve a model until the process is stopped; return the exit code.

    Parameters
    ----------
    location : str
        Folder or MLflow address.
    port : int
        Port; 0 means any free port.
    tracking_uri : str, optional
    megabytes : float
        Largest body of a request.
    strict : bool
        Whether to refuse cells of numbers and dates that cannot be read.

    Raises
    ------
    DeploymentError
        If the model cannot be loaded, or the port is in use.
    """
    if not megabytes > 0:
        raise DeploymentError(f"max-mb {megabytes:g}: give a number above 0")
    # before the model is loaded, so that a port in use is reported at once
    listening = _bound_socket(port)
    with listening, tempfile.TemporaryDirectory() as scratch:
        model = load_model(location, tracking_uri)
        print(_instructions(location, model, listening.getsockname()[1], Path(scratch)), flush=True)
        settings = uvicorn.Config(
            ModelServer(model, megabytes, strict),
            lifespan="off",
            ws="none",
            log_level="warning",
            timeout_graceful_shutdown=5,
        )
        # by default SIGTERM ends the process at once, and the scratch folder would stay
        before = signal.signal(signal.SIGTERM, _stop)
        try:
            uvicorn.Server(settings).run(sockets=[listening])
        finally:
            signal.signal(signal.SIGTERM, before)
    return 0


class ModelServer:
    """ASGI application: ``POST /invocations``, and ``GET`` of ``/ping``, ``/health`` and ``/version``.

    A request that cannot be predicted gets a status from 400 to 415 and one line of text as ``message``.

    Parameters
    ----------
    model : SavedModel
    megabytes : float
        Largest body of a request.
    strict : bool
        Whether to answer 400 to cells of numbers and dates that cannot be read; by default they count as missing.
    """

    def __init__(self, model: SavedModel, megabytes: float = MEGABYTES, strict: bool = False) -> None:
        self.model = model
        self.strict = strict
        self.megabytes = megabytes
        self._most_columns = len(model.encoder.known_columns) + _INDEX_COLUMNS

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        """Answer one request."""
        try:
            status, content = 200, await self._answer(scope, receive)
        except _RefusedRequestError as error:
            status, content = error.status, _json_line(error.code, str(error))
        except ConnectionResetError:  # the client left
            return
        except Exception as error:  # a fault of the program: the reply names it, the log has it
            status, content = 500, _json_line("INTERNAL_ERROR", f"{type(error).__name__}; see the log of the server")
            traceback.print_exc()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        if status in (408, 413):
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, scope: dict[str, Any], receive: Callable[..., Any]) -> bytes:
        path, method = scope["path"], scope["method"]
        if path in ("/ping", "/health", "/version"):
            return mlflow.__version__.encode() if path == "/version" else b"\n"
        if path != "/invocations":
            raise _RefusedRequestError(404, "no such path; there are /invocations, /ping, /health and /version")
        if method != "POST":
            raise _RefusedRequestError(405, "send POST to /invocations")
        kinds = [value.decode("latin-1") for name, value in scope["headers"] if name == b"content-type"]
        try:
            body = await asyncio.wait_for(self._body(receive), _BODY_SECONDS)
        except TimeoutError:
            raise _RefusedRequestError(408, f"the body did not arrive within {_BODY_SECONDS:g} s") from None
        # in a thread, so that /ping answers during a long prediction
        return await asyncio.to_thread(self._predicted, body, kinds[0] if kinds else "")

    async def _body(self, receive: Callable[..., Any]) -> bytes:
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            # counted on arrival: a body in chunks does not announce its size
            if size > self.megabytes * 1e6:
                raise _RefusedRequestError(
                    413, f"the body has more than {self.megabytes:g} MB: send fewer rows at a time (or serve --max-mb)"
                )
            more = message.get("more_body", False)
        return b"".join(parts)

    def _predicted(self, body: bytes, content_type: str) -> bytes:
        rows = _rows(body, content_type, self._most_columns)
        try:
            predicted = self.model.predict_frame(rows, strict=self.strict)
        except MultilabError as error:
            raise _RefusedRequestError(400, str(error)) from None
        reply = io.StringIO()
        scoring_server.predictions_to_json(predicted, reply)
        return reply.getvalue().encode()


def _rows(body: bytes, content_type: str, most_columns: int) -> pd.DataFrame:
    """Return the data frame of a body, read as MLflow reads it.

    More columns than the model knows are refused before pandas, which is slow for each column, makes a table of them.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in scoring_server.CONTENT_TYPES:
        got = f"not {excerpt(kind)!r}" if kind else "there is none"
        raise _RefusedRequestError(415 if kind else 400, f"the Content-Type must be application/json, {got}")
    try:
        if kind == scoring_server.CONTENT_TYPE_PARQUET:
            _refuse_more_columns(parquet.read_metadata(io.BytesIO(body)).num_columns, most_columns)
            return scoring_server.parse_parquet_input(io.BytesIO(body))
        if kind == scoring_server.CONTENT_TYPE_CSV:
            text = body.decode()
            _check_csv(text, most_columns)
            return scoring_server.parse_csv_input(io.StringIO(text))
        try:
            content = parse_json(body)
        except ValueError as error:
            raise _RefusedRequestError(400, f"the body must be valid JSON: {error}") from None
        if not isinstance(content, dict):
            raise _RefusedRequestError(
                400, "the body must be a JSON dictionary with dataframe_split or dataframe_records"
            )
        fields = {name: value for name, value in content.items() if name in scoring_server.SUPPORTED_FORMATS}
        if "instances" in fields and len(fields) == 1:  # MLflow makes arrays of them, which turn numbers into texts
            fields = {"dataframe_records": fields["instances"]}
        for table in fields.values():
            _refuse_more_columns(_width(table), most_columns)
        return pd.DataFrame(scoring_server.infer_and_parse_data(fields))
    except _RefusedRequestError:
        raise
    except MlflowException as error:
        raise _RefusedRequestError(400, error.message.partition("IMPORTANT:")[0]) from None
    except Exception as error:  # whatever MLflow and pandas raise for a table that is none
        raise _RefusedRequestError(400, f"no table: {type(error).__name__}: {error}") from None


def _check_csv(text: str, most_columns: int) -> None:
    """Refuse too many columns, and a row that is longer than the header: pandas would shift its cells."""
    lines = csv.reader(io.StringIO(text, newline=""))
    rows = (cells for cells in lines if cells)
    width = len(next(rows, []))
    _refuse_more_columns(width, most_columns)
    for cells in rows:
        if len(cells) > width:
            reason = f"line {lines.line_num} of the CSV has {len(cells)} cells, the header has {width}"
            raise _RefusedRequestError(400, reason)


def _width(table: Any) -> int:
    """Return the number of columns of a table in JSON: of a list of records, a dictionary of columns, or a split."""
    if isinstance(table, list):
        return len(set().union(*(row for row in table if isinstance(row, dict))))
    if not isinstance(table, dict):
        return 0
    if "data" not in table:
        return len(table)
    rows = [table.get("columns"), *table["data"]]  # without names the rows have columns as well
    return max((len(row) for row in rows if isinstance(row, list | dict)), default=0)


def _refuse_more_columns(found: int, most: int) -> None:
    if found > most:
        raise _RefusedRequestError(400, f"the table has {found} columns, the model knows {most - _INDEX_COLUMNS}")


class _RefusedRequestError(MultilabError):
    """Request that is refused: its status, and one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(excerpt(printable(reason), _MESSAGE_CHARACTERS))
        self.status = status
        self.code = "BAD_REQUEST" if status == 400 else f"HTTP_{status}"


def _json_line(code: str, message: str) -> bytes:
    return json.dumps({"error_code": code, "message": message}).encode()


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _bound_socket(port: int) -> socket.socket:
    if not 0 <= port < 65536:
        raise DeploymentError(f"port {port}: give a number from 0 to 65535")
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise DeploymentError(
            f"port {port} of {HOST}: {error.strerror}; give another with --port, or 0 for any"
        ) from None


def _instructions(location: str, model: SavedModel, port: int, scratch: Path) -> str:
    """Return a request that the model answers, as a command; one of many columns is written into a file."""
    row = model.example()
    split = {"columns": list(row.columns), "data": row.where(row.notna(), None).to_numpy(dtype=object).tolist()}
    body = canonical_json({"dataframe_split": split})
    if row.shape[1] > _FEW_COLUMNS:
        path = scratch / "request.json"
        path.write_text(body + "\n", encoding="utf-8")
        body = f"@{path}"
    address = f"http://{HOST}:{port}"
    return (
        f"serving {location} at {address} (health: {address}/ping); Ctrl-C stops it\n"
        f"  curl -H 'Content-Type: application/json' {address}/invocations --data-binary {shlex.quote(body)}"
    )
