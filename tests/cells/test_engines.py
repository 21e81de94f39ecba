"""Which engine runs cells: its settings, and what a wrong one is answered."""

from __future__ import annotations

import subprocess
import sys

import pytest

from multilab.cells.engines import LOCAL, current, engine_from, load_engine, using
from multilab.cells.errors import ExperimentError
from multilab.cli import main


def test_this_machine_is_the_default():
    assert load_engine("local").is_local
    assert current() is LOCAL
    with using(load_engine("dask", "tls://10.0.0.1:8786")) as engine:
        assert current() is engine
        assert (engine.kind, engine.address, engine.store) == ("dask", "tls://10.0.0.1:8786", None)
    assert current() is LOCAL


def test_the_environment_says_where_the_scheduler_is(monkeypatch):
    monkeypatch.setenv("MULTILAB_ENGINE_ADDRESS", "tls://10.0.0.2:8786")
    monkeypatch.setenv("MULTILAB_ENGINE_CA", "/certificates/ca.pem")
    monkeypatch.setenv("MULTILAB_ENGINE_STORE", "/shared/cells")
    engine = load_engine("dask")
    assert (engine.address, engine.tls, engine.store) == (
        "tls://10.0.0.2:8786",
        {"ca": "/certificates/ca.pem"},
        "/shared/cells",
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "dask"}, "where is the scheduler?"),
        ({"kind": "ray"}, "kind must be one of local, dask"),
        ({"kind": "dask", "address": "10.0.0.1:8786"}, "tls://HOST:PORT"),
        ({"kind": "dask", "address": "http://10.0.0.1"}, "tls://HOST:PORT"),
        ({"kind": "dask", "adress": "tls://x:1"}, "did you mean 'address'"),
        ({"kind": "dask", "address": "tls://x:1", "tls": {"pem": "x"}}, "'pem' is not a setting of a certificate"),
        ({"kind": "dask", "address": "tls://x:1", "patience": 0}, "patience must be a number of seconds"),
        ({"kind": "local", "address": "tls://x:1"}, "add --engine dask"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ExperimentError, match=message.replace("?", r"\?")):
        engine_from("conf/engine/mine.yaml", settings)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["study", "run", "--engine", "dusk"], "no engine is called 'dusk'; did you mean 'dask'?"),
        (["study", "run", "--engine", "dask"], "where is the scheduler?"),
        (["gate", "--engine-address", "tls://x:1"], "add --engine dask"),
        (["compare", "--dataset", "emotions", "--engine", "dask", "--engine-address", "x:1"], "tls://HOST:PORT"),
        (["store", "add", "--study", "quick", "--engine", "dask"], "where is the scheduler?"),
        (["train", "engine=dask", "dataset=genes-toy"], "where is the scheduler?"),
        (["train", "-m", "engine=dask", "hydra/launcher=joblib", "method=br,cc"], "and an engine exclude each other"),
    ],
)
def test_a_wrong_engine_is_one_line(argv, message, capsys, monkeypatch):
    monkeypatch.delenv("MULTILAB_ENGINE_ADDRESS", raising=False)
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert message in error


def test_a_scheduler_in_a_network_without_tls_is_open():
    assert load_engine("dask", "tcp://10.0.0.1:8786").is_open
    assert not load_engine("dask", "tcp://127.0.0.1:8786").is_open
    assert not load_engine("dask", "tls://10.0.0.1:8786").is_open


@pytest.mark.slow
def test_neither_import_nor_help_nor_a_local_run_import_dask(tmp_path):
    code = (
        "import sys, multilab.cells.execute\nfrom multilab.cli import main\nmain(['study', 'run', '--help'])\n"
        "sys.exit(bool({'dask', 'distributed'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True).returncode == 0


def test_the_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setenv("MULTILAB_ENGINE_ADDRESS", "tls://127.0.0.1:1")
    assert main(["train", "engine=dask", "dataset=genes-toy", "method=mlknn", "seed=987"]) == 2
    assert "distributed" in capsys.readouterr().err
