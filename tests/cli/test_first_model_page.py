"""The commands of the page "From a table to a served model" on real data, up to HTTP requests and a browser."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.html_page import Page
from multilab.datasets import load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "first-model.md"
STUDIOS = ["Abbey Road", "Hansa", "Motown", "Sun"]

pytestmark = [pytest.mark.slow, pytest.mark.data]


def commands() -> dict[str, list[str]]:
    """Return the commands of the page by their verb."""
    lines = re.findall(r"^```bash\n(.*?)\n```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return {line.split()[1]: shlex.split(line)[1:] for line in lines}


def songs(frame_seed: int) -> pd.DataFrame:
    """Return emotions as a plain table: row numbers, two categories, a remark, holes, and moods as tags."""
    rng = np.random.default_rng(frame_seed)
    data = load("emotions")
    features = pd.DataFrame(data.X, columns=data.feature_names).iloc[:, :30].round(4)
    features.insert(0, "tempo", np.where(features.iloc[:, 4] > features.iloc[:, 4].median(), "fast", "slow"))
    features.insert(1, "studio", rng.choice(STUDIOS, len(features)))
    features = features.mask(rng.random(features.shape) < 0.02)
    features.insert(0, "id", 1000 + np.arange(len(features)))
    words = ["a song", "one more song", "from the second record", "played live", "with the band", "an old tune"]
    features["remark"] = [" ".join(rng.permutation(words)) for _ in range(len(features))]
    names = np.array(data.label_names)
    moods = ["|".join(names[row == 1]) for row in data.Y]
    return features.assign(moods=moods).sample(frac=1, random_state=frame_seed)


class Stranger:
    """A user in a folder of their own, without the checkout and its data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MULTILAB_")},
            "MULTILAB_CELLS": str(folder / "cells"),
        }

    def start(self, *arguments: str, **options) -> subprocess.Popen:
        command = [sys.executable, "-m", "multilab", *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, **options)

    def run(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = process.communicate(timeout=900)[0]
        assert process.returncode == code, output
        assert "Traceback" not in output
        return output


@pytest.fixture(scope="module")
def stranger(tmp_path_factory, benchmark_data):
    folder = tmp_path_factory.mktemp("stranger")
    table = songs(frame_seed=0)
    table[:450].to_csv(folder / "songs.csv", index=False)
    table[450:].to_csv(folder / "new.csv", index=False)
    return Stranger(folder)


@pytest.fixture(scope="module")
def printed(stranger):
    """Run the commands of the page but the server's; return what each printed."""
    page = commands()
    assert list(page) == ["datasets", "compare", "fit", "predict", "serve", "monitor"]
    return {verb: stranger.run(*page[verb]) for verb in page if verb != "serve"}


def test_each_command_leads_to_the_next(printed, stranger):
    assert "next       " in printed["datasets"]
    assert "compare --dataset songs" in printed["datasets"]
    assert "--drop id" not in printed["datasets"]
    assert re.search(r"next: \S*multilab fit --dataset songs --method \w+", printed["compare"])
    assert "@champion" in printed["fit"]
    decisions = pd.read_csv(stranger.folder / "decisions.csv")
    labels = sorted(load("emotions").label_names)
    assert list(decisions) == ["id", *labels, *(f"{name}_probability" for name in labels)]
    assert len(decisions) == len(pd.read_csv(stranger.folder / "new.csv"))
    assert set(np.unique(decisions[labels])) == {0, 1}


def test_the_model_is_better_than_no_features(printed, stranger):
    """Decisions for rows that no command has seen, next to those that ignore the features."""
    from multilab.metrics import macro_average_precision

    new, decisions = (pd.read_csv(stranger.folder / name) for name in ("new.csv", "decisions.csv"))
    labels = sorted(load("emotions").label_names)
    moods = [set(tags.split("|")) for tags in new["moods"]]
    Y = np.array([[label in tags for label in labels] for tags in moods], dtype=int)
    scores = decisions[[f"{name}_probability" for name in labels]].to_numpy()
    by_chance = [
        macro_average_precision(Y, np.random.default_rng(seed).permutation(scores)) for seed in range(99)
    ]  # exchangeable with the model's own if it knew nothing: p <= 1 / 100
    assert macro_average_precision(Y, scores) > max(by_chance)


def test_the_server_answers_as_the_file_was_predicted(printed, stranger):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [str(port) if word == "5001" else word for word in commands()["serve"]]
    log = (stranger.folder / "server.txt").open("w")
    process = stranger.start(*arguments, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(address, process)
        rows = pd.read_csv(stranger.folder / "new.csv").iloc[:5].drop(columns=["id", "moods"])
        body = {"dataframe_split": json.loads(rows.to_json(orient="split", index=False))}
        status, reply = post(address, body)
        assert status == 200, reply
        expected = pd.read_csv(stranger.folder / "decisions.csv").iloc[:5].drop(columns="id")
        pd.testing.assert_frame_equal(pd.DataFrame(reply["predictions"]), expected)
        status, reply = post(address, {"dataframe_split": {"columns": ["tempo"], "data": [["fast"]]}})
        assert (status, "'studio'" in reply["message"]) == (400, True)
        assert post(address, "nonsense")[0] == 400
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(60)
        log.close()


def test_the_report_in_a_browser(printed, stranger, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium")
    report = stranger.folder / "reports" / "compare" / "songs" / "index.html"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shot = tmp_path / "report.png"
    figure = [f"--screenshot={shot}", "--window-size=1200,1600", report.as_uri()]
    subprocess.run([browser, *options, *figure], check=True, capture_output=True, timeout=300)
    assert shot.read_bytes().startswith(b"\x89PNG")
    dom = subprocess.run(
        [browser, *options, "--dump-dom", report.as_uri()], check=True, capture_output=True, text=True, timeout=300
    ).stdout
    for title in ("Leaderboard", "Tests", "Thresholds and calibration", "Labels", "Learning curve"):
        assert f">{title}</h2>" in re.sub(r"\s+<", "<", dom)
    assert len(Page(dom).tables) >= 5


def wait_for(address: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None
        try:
            urllib.request.urlopen(f"{address}/ping", timeout=5).close()
        except OSError:
            time.sleep(0.3)
        else:
            return
    raise AssertionError("the server did not answer in 300 s")


def post(address: str, body) -> tuple[int, dict]:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/invocations", data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
