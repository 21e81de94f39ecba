"""Completion in the shell: what is offered, how fast, and that the three shells use it."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from helpers.command_line import candidates, commands
from multilab.cells.conf import names
from multilab.cells.method import load_method
from multilab.cli import main
from multilab.cli.completion import arguments_of, metrics, models, presets
from multilab.cli.main import root
from multilab.cli.train import _SETTINGS

TESTS = Path(__file__).parents[1]


@pytest.fixture
def shell(tmp_path):
    """Return the environment of a shell that finds this multilab."""
    script = tmp_path / "bin" / "multilab"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m multilab "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("multilab compl", ["completion"]),
        ("multilab train dataset=emo", ["dataset=emotions"]),
        ("multilab train -m dataset=emotions,emo", []),
        ("multilab train -m dataset=emotions,yea", ["dataset=emotions,yeast"]),
        ("multilab tune method=mlknn method.ex", ["method.exclude_self="]),
        ("multilab train method=mlknn method.k=", ["method.k=10"]),
        ("multilab train method.exclude_self=", ["method.exclude_self=false", "method.exclude_self=true"]),
        ("multilab train method=br method.estimator.g", ["method.estimator.gamma="]),
        ("multilab train method=lskmddm method.cl", ["method.classify__k="]),
        ("multilab train protocol=official", ["protocol=official"]),
        ("multilab study train --study quick --method mlkn", ["mlknn", "mlknn_released"]),
        ("multilab train tune.ti", ["tune.timeout="]),
        ("multilab tune tune.pruner=", ["tune.pruner=MedianPruner", "tune.pruner=NopPruner"]),
        ("multilab train metrics=[micro_auc,micro_f", ["metrics=[micro_auc,micro_f1"]),
        ("multilab study evaluate --study lsk", ["lskmddm"]),
        ("multilab ga", ["gate"]),
        ("multilab gate --stud", ["--study"]),
        ("multilab study report --study=mlwse-", ["mlwse-core", "mlwse-pruned"]),
        ("multilab study run --engine d", ["dask"]),
        ("multilab train engine=", ["engine=dask", "engine=local"]),
        ("multilab datasets show emo", ["emotions"]),
        ("multilab methods show mlkn", ["mlknn", "mlknn_released"]),
        ("multilab results --l", ["--latex"]),
        ("multilab results --dataset emotions,yea", ["emotions,yeast"]),
        ("multilab compare --dataset emo", ["emotions"]),
        ("multilab fit --decis", ["--decision"]),
        ("multilab store list --status o", ["outdated"]),
        ("multilab store list --status=o", ["outdated"]),
        ("multilab completion f", ["fish"]),
        ("multilab nonsense a", []),
    ],
)
def test_what_is_offered(line, expected):
    assert candidates(line) == expected


@pytest.mark.parametrize(("words", "command"), [((), root), *commands()], ids=str)
def test_every_command_and_option_is_offered(words, command):
    line = " ".join(("multilab", *words))
    shown = {flag for p in command.params if isinstance(p, click.Option) and not p.hidden for flag in p.opts}
    shown = {flag for flag in shown if flag.startswith("--")}
    assert {one for one in candidates(f"{line} --") if one != "--help"} == shown
    if isinstance(command, click.Group):
        context = click.Context(command)
        visible = {name for name in command.list_commands(context) if not command.get_command(context, name).hidden}
        assert set(candidates(f"{line} ")) == visible


def test_every_setting_of_a_run_is_offered():
    from omegaconf import OmegaConf

    from multilab.core import conf_dir

    content = OmegaConf.load(conf_dir() / "config.yaml")
    own = {key for key in content if key not in ("defaults", "hydra", "tune")}
    assert {*own, *(f"tune.{name}" for name in content.tune)} <= set(_SETTINGS)
    assert {f"{name}=" for name in _SETTINGS} < set(candidates("multilab train "))


def test_every_setting_of_a_run_is_in_the_help(capsys):
    assert main(["train", "--help"]) == main(["tune", "--help"]) == 0
    text = capsys.readouterr().out
    assert [name for name in _SETTINGS if f"{name}=" not in text] == []


def test_registered_models_are_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert models() == []
    with contextlib.closing(sqlite3.connect("mlflow.db")) as database:
        assert models() == []
        database.execute("create table registered_model_aliases (name text, alias text, version int)")
        database.execute("insert into registered_model_aliases values ('mine', 'champion', 1)")
        database.commit()
    assert candidates("multilab predict models:/mi") == ["models:/mine@champion"]


def test_names_read_without_import_are_the_true_ones():
    from multilab.metrics import METRICS
    from multilab.metrics.conventions import PRESETS

    assert metrics() == sorted(METRICS)
    assert presets() == list(PRESETS)


@pytest.mark.parametrize("name", names("method"))
def test_arguments_are_those_of_the_class(name):
    from multilab.cli.methods import signature_of

    method = load_method(name)
    if name in ("tabm", "omikuji"):
        pytest.importorskip(name, reason="the extra `tabular-nets` or `xmc` is not installed")
    known = {argument.partition(".")[0] for argument in arguments_of(name)}
    expected = set() if "steps" in method.params else set(signature_of(method.target))
    assert expected <= known


def test_cells_are_offered_by_key(monkeypatch, tmp_path):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path))
    (tmp_path / ("ab" * 32)).mkdir()
    assert candidates("multilab store show ab") == ["ab" * 6]


def test_it_imports_nothing_heavy(shell):
    code = (
        "import sys; from helpers.command_line import candidates, commands\n"
        "print(*candidates('multilab train method=mlwse_l1 method.al'), sep='\\n')\n"
        "print(sorted({'numpy', 'sklearn', 'hydra', 'omegaconf', 'pandas'} & set(sys.modules)))"
    )
    env = {**shell, "PYTHONPATH": str(TESTS)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["method.algorithm=", "method.alpha=", "[]"]


@pytest.mark.parametrize("argv", [[], ["tcsh"], ["bash", "zsh"]])
def test_an_unknown_shell_is_one_line(argv, capsys):
    assert main(["completion", *argv]) == 2
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert error.count("\n") == 1


def test_bash_completes_a_word_with_an_equals_sign(shell, tmp_path):
    """Bash splits at ``=``: the function sees ``emo``, and must return what replaces it."""
    with contextlib.closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        database.execute("create table registered_model_aliases (name text, alias text, version int)")
        database.execute("insert into registered_model_aliases values ('mine', 'champion', 1)")
        database.commit()
    script = """
    eval "$(multilab completion bash)"
    complete -p multilab
    ask() { COMP_LINE="$1"; COMP_POINT=${#1}; compopt() { echo "compopt $1 $2"; }; _multilab_complete multilab "$2"
        printf '%s\\n' "${COMPREPLY[@]}"; }
    ask "multilab train dataset=emo" "emo"
    ask "multilab train dataset=" ""  | head -2
    ask "multilab train method=mlknn method.exc" "method.exc"
    ask "multilab stor" "stor"
    ask "multilab store list --status=o" "o"
    ask "multilab train dataset=emotions,sc" "emotions,sc" | head -1
    ask "multilab predict models:/mine@ch" "ch"
    """
    run = subprocess.run(["bash", "-c", script], env=shell, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "complete -o default -F _multilab_complete multilab",
        "emotions",
        "3s-bbc1000",
        "birds",
        "compopt -o nospace",
        "method.exclude_self=",
        "store",
        "outdated",
        "emotions,scenario1",
        "champion",
    ], run.stderr


def typed(argv: list[str], env: dict[str, str], lines: list[str], until: str) -> str:
    """Type lines into an interactive shell; return what its terminal shows once it holds ``until``."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, {**env, "PS1": "ready> ", "COLUMNS": "200"})
    shown = b""

    def wait_for(text: str, seconds: float) -> None:
        nonlocal shown
        end = time.monotonic() + seconds
        while text not in shown.decode(errors="replace") and time.monotonic() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                shown += os.read(terminal, 65536)

    try:
        wait_for("ready> ", 10)
        for line, answer in zip(lines, [*["ready> "] * (len(lines) - 1), until], strict=True):
            shown = b""
            os.write(terminal, line.encode())
            wait_for(answer, 20)
        return shown.decode(errors="replace")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_tab_in_an_interactive_bash(shell):
    lines = ['eval "$(multilab completion bash)"\n', "multilab train dataset=emo\t"]
    assert "dataset=emotions" in typed(["bash", "--norc", "--noprofile", "-i"], shell, lines, "emotions")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_tab_in_an_interactive_zsh(shell):
    lines = [
        "autoload -U compinit; compinit -D -u\n",
        'eval "$(multilab completion zsh)"\n',
        "multilab train dataset=emo\t",
    ]
    assert "dataset=emotions" in typed(["zsh", "-f", "-i"], shell, lines, "emotions")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(shell, tmp_path):
    script = 'multilab completion fish | source; complete -C "multilab train dataset=emo"; complete -C "multilab stor"'
    env = {**shell, "HOME": str(tmp_path)}
    run = subprocess.run(["fish", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["dataset=emotions", "store"], run.stderr
