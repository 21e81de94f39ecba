"""Packages import a public name when it is first used."""

import importlib
import subprocess
import sys

import pytest

LAZY = ["claims", "datasets", "model_selection", "reports", "statistics"]


@pytest.mark.parametrize("name", LAZY)
def test_every_public_name_can_be_imported(name):
    package = importlib.import_module(f"multilab.{name}")
    assert dir(package) == package.__all__
    for public in package.__all__:
        assert getattr(package, public) is not None
    with pytest.raises(AttributeError, match=f"module 'multilab.{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_the_packages_alone_import_no_numpy():
    program = f"import sys\nfor name in {LAZY}: __import__('multilab.' + name)\nprint('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
