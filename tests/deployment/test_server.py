"""`multilab serve`: real HTTP requests, right and wrong ones, to a server on a free port of 127.0.0.1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pandas as pd
import pytest

from helpers.models_for_use import LABELS
from multilab.deployment import DeploymentError
from multilab.deployment.serving import serve_model

COLUMNS = ["age", "town", "income", "member"]
START_SECONDS = 300


@pytest.fixture(scope="module")
def server(model_path, tmp_path_factory):
    """Return the address of a server and its process."""
    log = tmp_path_factory.mktemp("server") / "out.txt"
    command = [sys.executable, "-m", "multilab", "serve", str(model_path), "--port", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        yield _address(process, log), process
    finally:
        process.terminate()
        process.wait(60)


def _address(process, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        parts = log.read_text().partition(" at http://")[2].split(" ")
        if parts[0]:
            try:
                urllib.request.urlopen(f"http://{parts[0]}/ping", timeout=5).close()
                return f"http://{parts[0]}"
            except OSError:
                pass
        time.sleep(0.2)
    raise AssertionError(f"no answer in {START_SECONDS} s: {log.read_text()}")


def post(address, body):
    """Return status and JSON of a POST to /invocations."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/invocations", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def split(*rows, columns=COLUMNS):
    return {"dataframe_split": {"columns": list(columns), "data": [list(row) for row in rows]}}


@pytest.mark.slow
def test_predictions_are_those_of_the_model(server, model):
    address, _ = server
    rows = [[30, "York", 20.5, "true"], [None, "Paris", 2, True]]
    status, reply = post(address, split(*rows))
    assert status == 200
    expected = model.predict_frame(pd.DataFrame(rows, columns=COLUMNS))
    pd.testing.assert_frame_equal(pd.DataFrame(reply["predictions"]), expected)
    assert list(reply["predictions"][0])[:3] == LABELS
    status, records = post(address, {"dataframe_records": [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
    assert (status, records) == (200, reply)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{nonsense", "valid JSON"),
        (b"", "valid JSON"),
        ([1, 2], "must be a JSON dictionary"),
        ({"rows": []}, "exactly one of the input fields"),
        ({"dataframe_split": 5}, "must be a dictionary"),
        (split(["old", "York", 3, "true"]), "column 'age', row 1: 'old' is not a finite number"),
        (split([[1, 2], "York", 3, "true"]), "column 'age', row 1: [1, 2] is not a finite number"),
        (split([30], columns=["age"]), "columns of the training data are missing: 'town', 'income', 'member'"),
        (split(), "no row to predict"),
        (split([1, "York"]), "4 columns passed"),
    ],
)
def test_wrong_requests_are_status_400_and_the_server_stays(server, body, message):
    address, process = server
    status, reply = post(address, body)
    assert status == 400
    assert message in reply["message"]
    assert "Traceback" not in json.dumps(reply)
    assert process.poll() is None
    assert post(address, split([30, "York", 20, "true"]))[0] == 200


@pytest.mark.slow
def test_the_server_stops_with_its_process(model_path, server):
    address, process = server
    port = int(address.rpartition(":")[2])
    with pytest.raises(DeploymentError, match=f"port {port} of 127.0.0.1: Address already in use"):
        serve_model(str(model_path), port)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{address}/ping", timeout=5).close()
        except OSError:
            return
        time.sleep(0.2)
    raise AssertionError("the server still answers")


@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_that_do_not_exist(model_path, port):
    with pytest.raises(DeploymentError, match=f"port {port}: give a number from 0 to 65535"):
        serve_model(str(model_path), port)
