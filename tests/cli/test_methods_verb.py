"""`multilab methods`: what methods there are, and the arguments of each."""

from __future__ import annotations

import importlib.util
import inspect
import json

import pytest

from multilab.cells.conf import names
from multilab.cells.method import family_of, load_method
from multilab.cli import main


def methods(capsys, *argv, code=0):
    assert main(["methods", *argv]) == code
    return capsys.readouterr()


def test_list_has_every_method_with_its_family_and_title(capsys):
    lines = methods(capsys, "list").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == names("method")
    assert next(line for line in lines if line.startswith("mlknn ")).split()[1:3] == ["neighbours", "features"]
    assert next(line for line in lines if line.startswith("mlwse_l1 ")).split()[1:4] == ["stacking", "base", "scores"]


def test_list_of_one_family(capsys):
    listed = [line.split()[0] for line in methods(capsys, "list", "stacking").out.splitlines()[1:]]
    assert listed == [name for name in names("method") if family_of(load_method(name)) == "stacking"]
    assert "did you mean 'stacking'" in methods(capsys, "list", "staking", code=2).err


def test_show_has_the_arguments_of_the_signature(capsys):
    from multilab.methods import MLkNN

    text = methods(capsys, "show", "mlknn").out
    for name, parameter in inspect.signature(MLkNN).parameters.items():
        default = parameter.default if isinstance(parameter.default, str) else json.dumps(parameter.default)
        assert any(line.split()[:3] == [name, "=", default] for line in text.splitlines()), name
    assert "M.-L. Zhang" in text
    assert "k                        int 1 to 60, logarithmic" in text
    assert "Mulan's variant" in text


def test_show_has_the_default_beside_a_value_that_differs(capsys):
    text = methods(capsys, "show", "br").out
    assert "calibration = sigmoid (default null)" in text
    assert "estimator = SVC(C=1.0, kernel=rbf, gamma=scale) (default null)" in text
    assert "features, scaled to [0, 1] (fitted on the training set)" in text


def test_show_says_what_a_stacking_method_reads(capsys):
    assert "out-of-fold scores of br, cc, lp (folds 5, order 1)" in methods(capsys, "show", "mlwse_l1").out


def test_show_has_the_arguments_of_every_step_of_a_pipeline(capsys):
    text = methods(capsys, "show", "lskmddm").out
    assert "arguments of reduce (LSKernelMDDM" in text
    assert "arguments of classify (MLkNN" in text
    assert "solver = cholesky" in text


@pytest.mark.parametrize("name", names("method"))
def test_every_method_can_be_shown(name, capsys):
    text = methods(capsys, "show", name).out
    assert text.startswith(f"{name}: {load_method(name).title}")
    if name not in ("tabm", "omikuji") or importlib.util.find_spec(name):  # the extras `tabular-nets` and `xmc`
        assert "cannot be imported" not in text


def test_an_unknown_method_is_one_line(capsys):
    error = methods(capsys, "show", "mlkn", code=2).err
    assert len(error.strip().splitlines()) == 1
    assert "did you mean 'mlknn'" in error
