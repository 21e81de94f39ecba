"""Sweeps on Hydra's launchers: every launcher fills the same store with the same results."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.plugins import Plugins
from omegaconf import OmegaConf

from multilab.cells.store import Store
from multilab.cli import main
from multilab.experiments.compose import FileConfigSource, cells_at_once

SWEEP = ["dataset=genes-toy", "method=mlknn", "method.k=5,100000,7", "protocol=kfold3", "publish=false"]
PLUGINS = {"joblib": "joblib", "submitit_local": "submitit"}
EXTRAS = {"joblib": "joblib", "submitit_local": "slurm"}


def test_hydra_takes_our_source_for_its_own_in_the_processes_of_a_launcher():
    """There it gets the state of the launching process first and registers its own sources after it."""
    Plugins.instance()
    registry = SourcesRegistry.instance()
    before = registry.types["file"]
    try:
        registry.types["file"] = pickle.loads(pickle.dumps(FileConfigSource))
        registry.register(file_config_source.FileConfigSource)
        assert registry.types["file"] is FileConfigSource
    finally:
        registry.types["file"] = before


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"_target_": "hydra._internal.core_plugins.basic_launcher.BasicLauncher"}, None),
        ({"_target_": "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher", "n_jobs": 4}, 1),
        ({"_target_": "x.SlurmLauncher", "cpus_per_task": None}, 1),
        ({"_target_": "x.SlurmLauncher", "cpus_per_task": 8}, 8),
    ],
)
def test_jobs_that_run_at_once_do_not_take_all_cores_each(settings, expected):
    assert cells_at_once(OmegaConf.create(settings)) == expected


@pytest.fixture(params=sorted(PLUGINS))
def launcher(request):
    """Return a launcher that is installed."""
    plugin = f"hydra_plugins.hydra_{PLUGINS[request.param]}_launcher"
    if find_spec("hydra_plugins") is None or find_spec(plugin) is None:
        pytest.skip(f'not installed: pip install ".[{EXTRAS[request.param]}]"')
    return request.param


def sweep(folder: Path, *argv: str) -> tuple[int, str]:
    """Run a sweep in a folder; return the exit code and what it printed."""
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB_CELLS")}
    command = [sys.executable, "-m", "multilab", "train", "-m", *SWEEP, *argv]
    run = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=300)
    return run.returncode, run.stdout + run.stderr


def digests(folder: Path) -> dict[str, str]:
    """Return the digests of the arrays of the cells in the store of a folder."""
    store = Store(folder / ".cells")
    return {key: (store.digests(key) or {})["arrays.npz"] for key in store.finished()}


def check_printed(printed: str) -> None:
    """Check what the launching process prints at the end of the sweep, whose second job of three fails."""
    assert "genes-toy, kfold3: mean" in printed, "the launching process prints the table of the sweep"
    assert "1 of 3 jobs of the sweep failed: method.k=100000: " in printed
    assert "k=100000 neighbours need" in printed
    assert "Traceback" not in printed


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """Return the results of a sweep without a launcher."""
    folder = tmp_path_factory.mktemp("serial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MULTILAB_CELLS", str(folder / ".cells"))
        patch.setenv("MULTILAB_JOBS", "1")
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            assert main(["train", "-m", *SWEEP]) == 2
    return digests(folder), out.getvalue()


def test_a_failed_job_stops_no_other_and_is_named(serial):
    cells, printed = serial
    assert len(cells) == 6
    check_printed(printed)


def test_several_failed_jobs_are_each_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["train", "-m", *SWEEP[:2], "method.k=100000,200000", *SWEEP[3:]]) == 2
    printed = capsys.readouterr().err
    assert "2 of 2 jobs of the sweep failed: method.k=100000: " in printed
    assert "failed: method.k=200000: " in printed


@pytest.mark.slow
def test_a_launcher_fills_the_store_with_equal_results_though_a_job_fails(launcher, serial, tmp_path):
    code, printed = sweep(tmp_path / launcher, f"hydra/launcher={launcher}")
    assert code == 2, printed
    check_printed(printed)
    assert digests(tmp_path / launcher) == serial[0]
