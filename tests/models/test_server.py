"""`multilab serve`: real HTTP requests, right and wrong ones, to a server on a free port of 127.0.0.1."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.request
from pathlib import Path

import pandas as pd
import pytest
import uvicorn

from helpers.models_for_use import LABELS
from multilab.datasets import FeatureColumn, TableEncoder
from multilab.models import DeploymentError, SavedModel, serving
from multilab.models.serving import HOST, ModelServer, _instructions, serve_model

COLUMNS = ["age", "town", "income", "member"]
START_SECONDS = 300


@pytest.fixture(scope="module")
def running(model_path, tmp_path_factory):
    """Return the address of `multilab serve` in a separate process, the process, and what it printed."""
    log = tmp_path_factory.mktemp("server") / "out.txt"
    command = [sys.executable, "-m", "multilab", "serve", str(model_path), "--port", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        yield _address(process, log), process, log
    finally:
        process.terminate()
        process.wait(60)


def _address(process, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        parts = log.read_text().partition(" at http://")[2].split(" ")
        if len(parts) > 1:
            try:
                urllib.request.urlopen(f"http://{parts[0]}/ping", timeout=5).close()
                return f"http://{parts[0]}"
            except OSError:
                pass
        time.sleep(0.2)
    raise AssertionError(f"no answer in {START_SECONDS} s: {log.read_text()}")


@contextlib.contextmanager
def in_thread(app):
    """Serve an application in a thread of this process; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", log_level="warning"))
    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://{HOST}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)


@pytest.fixture(scope="module")
def address(model):
    with in_thread(ModelServer(model, megabytes=1)) as address:
        yield address


def post(address, body, content_type="application/json"):
    """Return status and JSON of a POST to /invocations."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", "/invocations", data, {"Content-Type": content_type} if content_type else {})
        reply = connection.getresponse()
        return reply.status, json.load(reply)


def split(*rows, columns=COLUMNS):
    return {"dataframe_split": {"columns": list(columns), "data": [list(row) for row in rows]}}


def test_predictions_are_those_of_the_model(address, model):
    rows = [[30, "York", 20.5, "true"], [None, "Paris", 2, True]]
    status, reply = post(address, split(*rows))
    assert status == 200
    expected = model.predict_frame(pd.DataFrame(rows, columns=COLUMNS))
    pd.testing.assert_frame_equal(pd.DataFrame(reply["predictions"]), expected)
    assert list(reply["predictions"][0])[:3] == LABELS
    records = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    assert post(address, {"dataframe_records": records}) == (200, reply)
    assert post(address, {"instances": records}) == (200, reply)
    assert post(address, {"inputs": dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))}) == (
        200,
        reply,
    )
    text = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False).encode()
    assert post(address, text, "text/csv; charset=utf-8") == (200, reply)
    parquet = pd.DataFrame([[30, "York", 20.5, True]], columns=COLUMNS).to_parquet(index=False)
    assert post(address, parquet, "application/vnd.apache.parquet") == (200, {"predictions": reply["predictions"][:1]})


def number(digits):
    return json.dumps(split(["N", "York", 3, "true"])).replace('"N"', "1" * digits).encode()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{nonsense", "valid JSON"),
        (b"", "valid JSON"),
        (b"\xff\xfe", "valid JSON"),
        (b"[" * 200_000, "valid JSON: nested too deeply"),
        (b'{"dataframe_split": ' * 50_000, "valid JSON: nested too deeply"),
        (number(5001), "valid JSON: Exceeds the limit"),
        (number(401), "column 'age', row 1: not a finite number"),
        ([1, 2], "must be a JSON dictionary"),
        ({"rows": []}, "exactly one of the input fields"),
        ({"dataframe_split": 5}, "must be a dictionary"),
        ({"dataframe_split": {"columns": 5, "data": [[1]]}}, "not a valid dataframe"),
        ({"dataframe_records": [1, [2]]}, ""),
        ({"inputs": 5}, "no table"),
        ({"instances": [5, "a"]}, "columns of the training data are missing"),
        (split([[1, 2], "York", 3, "true"]), "column 'age', row 1: the cell is a list"),
        (split([30], columns=["age"]), "columns of the training data are missing: 'town', 'income', 'member'"),
        (split([30, 31, "York", 3, "true"], columns=["age", *COLUMNS]), "columns occur twice: 'age'"),
        (split([30, "York", 3, "true", 5], columns=[*COLUMNS, "height"]), "did not have: 'height'"),
        (split(), "no row to predict"),
        (split([1, "York"]), "4 columns passed"),
        (split(columns=[f"c{k}" for k in range(100)]), "100 columns"),
        ({"dataframe_split": {"data": [[1] * 100]}}, "100 columns"),
        ({"dataframe_records": [{f"c{k}": 1} for k in range(100)]}, "100 columns"),
        ({"inputs": {f"c{k}": [1] for k in range(100)}}, "100 columns"),
    ],
    ids=range(24),
)
def test_wrong_requests_are_status_400_with_one_line(address, body, message):
    status, reply = post(address, body)
    assert status == 400
    assert message in reply["message"]
    assert len(reply["message"]) <= 300
    assert "\n" not in reply["message"]
    assert "Traceback" not in json.dumps(reply)
    assert post(address, split([30, "York", 20, "true"]))[0] == 200


def test_a_cell_that_cannot_be_read_is_a_missing_one_or_refused(model, address):
    replies = [post(address, split([age, "York", 3, "true"])) for age in ("old", None)]
    assert [status for status, _ in replies] == [200, 200]
    assert replies[0] == replies[1]
    with in_thread(ModelServer(model, strict=True)) as strict:
        status, reply = post(strict, split(["old", "York", 3, "true"]))
    assert (status, reply["message"].partition(" is ")[0]) == (400, "column 'age', row 1: 'old'")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"age,town,income,member\n1" + b"0" * 400 + b",York,3,true\n", "not a finite number"),
        (b"age,town,income,member\n30,York,3,true\n7,30,York,3,true\n", "line 3"),
        (b"," * 100 + b"\n", "101 columns"),
    ],
)
def test_wrong_requests_in_csv_are_status_400_with_one_line(address, body, message):
    status, reply = post(address, body, "text/csv")
    assert status == 400
    assert message in reply["message"]


def test_a_table_of_too_many_columns_does_not_reach_pandas(model, monkeypatch):
    monkeypatch.setattr(serving.scoring_server, "parse_csv_input", lambda _: pytest.fail("read"))
    monkeypatch.setattr(serving.scoring_server, "infer_and_parse_data", lambda _: pytest.fail("read"))
    with in_thread(ModelServer(model, megabytes=1)) as address:
        assert post(address, ",".join(f"c{k}" for k in range(1000)).encode(), "text/csv")[0] == 400
        assert post(address, {"dataframe_records": [{f"c{k}": 1} for k in range(1000)]})[0] == 400


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        (None, split([30, "York", 20, "true"]), 400),
        ("text/plain", b"x", 415),
        ("text/csv", b"age,town\n\xff\xfe", 400),
        ("text/csv", b"", 400),
        ("text/csv", b"age,age,town,income,member\n1,1,York,3,true\n", 400),
        ("application/vnd.apache.parquet", b"PAR1", 400),
        ("application/json", b" " * 1_000_001, 413),
    ],
)
def test_bodies_of_other_kinds_are_refused_in_one_line(address, kind, body, status):
    code, reply = post(address, body, kind)
    assert (code, set(reply)) == (status, {"error_code", "message"})
    assert "\n" not in reply["message"]
    assert "Traceback" not in reply["message"]


@pytest.mark.parametrize(("path", "status"), [("/ping", 200), ("/version", 200), ("/docs", 404), ("/invocations", 405)])
def test_other_paths(address, path, status):
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path)
        assert connection.getresponse().status == status


def test_a_body_that_does_not_arrive_is_given_up(address, monkeypatch):
    monkeypatch.setattr(serving, "_BODY_SECONDS", 0.2)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"POST /invocations HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
        reply = b"".join(iter(lambda: connection.recv(4096), b""))
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within 0.2 s" in reply


def test_a_fault_of_the_model_is_status_500_in_one_line(model, capsys):
    broken = SavedModel(None, model.encoder, model.metadata)
    with in_thread(ModelServer(broken)) as address:
        status, reply = post(address, split([30, "York", 20, "true"]))
    assert (status, reply["message"]) == (500, "AttributeError; see the log of the server")
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("n_columns", [1, 6, 7, 141])
def test_the_printed_request_works(n_columns, tmp_path):
    names = ['it\'s "a" $HOME', *(f"column {j}" for j in range(1, n_columns))]
    encoder = TableEncoder(tuple(FeatureColumn(name, None, 0.5) for name in names))
    metadata = types.SimpleNamespace(label_names=["tag"], score_kind="score")
    fitted = types.SimpleNamespace(predict_with_scores=lambda X: (X[:, :1], X[:, :1] > 0))
    model = SavedModel(fitted, encoder, metadata)
    with in_thread(ModelServer(model)) as address:
        printed = _instructions("model", model, int(address.rpartition(":")[2]), tmp_path)
        _, dashes, header, url, flag, data = shlex.split(printed.splitlines()[1])
        assert (dashes, header, flag) == ("-H", "Content-Type: application/json", "--data-binary")
        body = Path(data[1:]).read_bytes() if data.startswith("@") else data.encode()
        assert url == f"{address}/invocations"
        assert post(address, body) == (200, {"predictions": [{"tag": 1, "tag_score": 0.5}]})


@pytest.mark.slow
def test_the_printed_command_works_as_it_is(running):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    _, _, log = running
    command = log.read_text().splitlines()[1]
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60)
    assert set(json.loads(done.stdout)["predictions"][0]) >= set(LABELS)


@pytest.mark.slow
def test_the_server_stops_with_its_process(model_path, running):
    address, process, _ = running
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
