"""Composition of ad hoc runs: dataset cards are data, and a wrong setting is refused before any work starts."""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import subprocess
import sys

import pytest
from hydra._internal.utils import get_args_parser

from multilab.cli import main
from multilab.experiments import compose

CARD = "title: {title}\nreader: {{label_columns: [left, up]}}\nfiles: [{{role: full, path: {path}}}]\n"
EVIL = """# @package _global_
title: x
hydra: {{callbacks: {{x: {{_target_: joblib.load, filename: "{pickle}"}}}}}}
"""
QUICK = ("dataset=scenario1", "method=mlknn", "protocol=kfold3", "publish=false")


class Marker:
    """Creates a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def write_card(folder, name: str) -> None:
    folder.mkdir(exist_ok=True)
    rows = "\n".join(f"{i % 7},{i % 5},{int(i % 7 > 3)},{int(i % 5 > 2)}" for i in range(60))
    (folder / f"{name}.csv").write_text(f"a,b,left,up\n{rows}\n")
    (folder / f"{name}.yaml").write_text(CARD.format(title=name, path=f"{name}.csv"))


def run(folder, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``multilab`` in a folder, with a store of its own."""
    variables = {**os.environ, "MULTILAB_CELLS": str(folder / "cells"), **env}
    command = [sys.executable, "-m", "multilab", *arguments]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    """Return the one line on stderr of a refused command, which must have computed nothing."""
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert " of 3" not in result.stdout + result.stderr  # no progress of cells
    return result.stderr


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A folder with a card that names a pickle as a Hydra callback, in each file that can hold settings."""
    root = tmp_path_factory.mktemp("evil")
    (root / "mine.pickle").write_bytes(pickle.dumps(Marker(str(root / "loaded"))))
    shutil.copytree(os.environ["MULTILAB_CONF"], root / "conf")
    for folder in (root / "dataset", root / "conf" / "dataset", root / "more" / "dataset"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "evil.yaml").write_text(EVIL.format(pickle=root / "mine.pickle"))
    return root


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [
        pytest.param(["dataset=evil"], "MULTILAB_CARDS=dataset", marks=pytest.mark.slow),
        pytest.param(["-m", "dataset=evil,scenario1"], "MULTILAB_CARDS=dataset", marks=pytest.mark.slow),
        (["dataset=evil"], "MULTILAB_CONF=conf"),
        pytest.param(["+dataset=evil"], "MULTILAB_CONF=conf", marks=pytest.mark.slow),
        pytest.param(["dataset@_global_=evil"], "MULTILAB_CONF=conf", marks=pytest.mark.slow),
        pytest.param(["method=../dataset/evil"], "MULTILAB_CONF=conf", marks=pytest.mark.slow),
        pytest.param(["+protocol/../dataset=evil"], "MULTILAB_CONF=conf", marks=pytest.mark.slow),
        pytest.param(["+/dataset=evil"], "MULTILAB_CONF=conf", marks=pytest.mark.slow),
        (["--config-dir", "more", "+dataset=evil"], "MULTILAB_CARDS=more"),
    ],
)
def test_a_card_runs_no_code(evil, arguments, variable):
    name, _, folder = variable.partition("=")
    result = run(evil, "train", *arguments, **{name: str(evil / folder)})
    assert result.returncode == 2, result.stderr
    assert not (evil / "loaded").exists(), "the pickle was loaded"


def test_the_pickle_of_the_evil_card_would_be_noticed(evil):
    import joblib

    joblib.load(evil / "mine.pickle")
    assert (evil / "loaded").is_dir()
    (evil / "loaded").rmdir()


@pytest.mark.slow
def test_sweeps_expand_globs_against_the_catalogue(tmp_path):
    for name in ("toy-a", "toy-b", "other"):
        write_card(tmp_path / "cards", name)
    more = {"MULTILAB_CARDS": str(tmp_path / "cards")}
    settings = ["method=mlknn", "protocol=kfold3", "publish=false", "metrics=hamming_loss"]
    result = run(tmp_path, "train", "-m", "dataset=glob(toy-*)", *settings, **more)
    assert result.returncode == 0, result.stderr
    assert "mlknn on toy-a, 3 splits" in result.stdout
    assert "mlknn on toy-b, 3 splits" in result.stdout
    assert "other" not in result.stdout
    assert " ± 0." in result.stdout
    single = run(tmp_path, "train", "dataset=glob(toy-*)", *settings, **more)
    assert "names 2 datasets; add -m" in one_line(single)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("dataset=scenaro1", "no dataset is called 'scenaro1'; did you mean 'scenario1'?"),
        ("dataset=nothing_like_it", "there are: 3s-bbc1000, birds"),
        ("method=mlkn", "no method is called 'mlkn'; did you mean 'mlknn'?"),
        ("protocol=kfold6", "There are: holdout70, kfold10, kfold3"),
        ("method.kk=3", "mlknn has no argument kk; it has k, s, "),
        ("+method.kk=3", "mlknn has no argument kk; it has k, s, "),
        ("method.k=ten", "k must be a whole number, not 'ten'"),
        ("method.scale=minmaxx", "scale must be 'minmax' or null, not 'minmaxx'"),
        ("method.preprocessing=log", "preprocessing must be none, minmax, standard or tfidf, got 'log'"),
        ("metrics=[hamming,f1]", "no metric is called 'hamming'; did you mean 'hamming_loss'?"),
        ("metrics=[]", "metrics is empty"),
        ("tune.metric=rank_loss", "no metric is called 'rank_loss'; did you mean 'ranking_loss'?"),
        ("tune.n_trials=-4", "tune.n_trials must be an integer >= 1, got -4"),
        ("tune.n_trails=4", "did you mean tune.n_trials?"),
        (
            "tune.sampler=TPESampller",
            "TPESampler, RandomSampler, QMCSampler or GridSampler, got 'TPESampller'; did you mean 'TPESampler'?",
        ),
        ("conventions=mulann", "mulann"),
        ("seed=-1", "seed must be a whole number, at least 0"),
        ("sede=1", "no setting is called 'sede'; did you mean seed?"),
        ("publish=perhaps", "publish must be true or false"),
        ("protocol.kfold=1", "kfold"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line_before_any_work(argument, message, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    code = main(["train", *QUICK, argument])
    output = capfd.readouterr()
    assert code == 2
    assert message in output.err
    assert len(output.err.strip().splitlines()) == 1, output.err
    assert not [path for path in (tmp_path / "cells").glob("*") if not path.name.startswith(".")]


def test_every_run_of_a_sweep_is_checked_before_the_first(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["train", "-m", *QUICK, "method.k=3,ten"]) == 2
    output = capfd.readouterr()
    assert "k must be a whole number, not 'ten'" in output.err
    assert "scenario1" not in output.out


def test_an_argument_that_the_yaml_does_not_name_needs_no_plus(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["train", *QUICK, "method.scale=minmax"]) == 0
    assert "mlknn on scenario1, 3 splits  method.scale=minmax" in capfd.readouterr().out


def test_hydra_makes_its_parser_where_argparse_checks_help_texts(monkeypatch):
    """As Python 3.14 does, when an argument is added."""
    if not hasattr(argparse.ArgumentParser, "_check_help"):
        add = argparse._ActionsContainer.add_argument

        def checked_add(self, *names, **options):
            action = add(self, *names, **options)
            if hasattr(self, "_get_formatter"):
                self._check_help(action)
            return action

        def check_help(self, action):
            assert action.help is None or "%" not in action.help

        monkeypatch.setattr(argparse._ActionsContainer, "add_argument", checked_add)
        monkeypatch.setattr(argparse.ArgumentParser, "_check_help", check_help, raising=False)
    with pytest.raises((TypeError, ValueError)):
        get_args_parser()
    with compose._lazy_help():
        assert get_args_parser().parse_args(["-m", "seed=1"]).overrides == ["seed=1"]
    with pytest.raises((TypeError, ValueError)):
        get_args_parser()


@pytest.mark.parametrize(
    ("path", "card"),
    [
        ("dataset", True),
        ("dataset/evil", True),
        ("/dataset/evil", True),
        ("./dataset/evil.yaml", True),
        ("Dataset/evil", True),
        ("method/../dataset/evil", True),
        ("../conf/dataset/evil", True),
        ("", False),
        ("method", False),
        ("method/dataset", False),
        ("config", False),
    ],
)
def test_hydra_does_not_see_the_cards_by_any_path(path, card, checkout):
    from hydra._internal.core_plugins import file_config_source

    from multilab.experiments.compose import FileConfigSource

    source = FileConfigSource("main", f"file://{checkout / 'conf'}")
    if card:
        assert not source.is_group(path)
        assert not source.is_config(path)
    else:
        plain = file_config_source.FileConfigSource("main", f"file://{checkout / 'conf'}")
        assert source.is_group(path) == plain.is_group(path)
        assert source.is_config(path) == plain.is_config(path)
    assert "dataset" not in source.list("", None)
    assert "method" in source.list("", None)
