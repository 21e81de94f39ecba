"""Packages import a public name when it is first used."""

import importlib
import inspect
import pydoc
import subprocess
import sys

import pytest

import multilab.methods
from multilab.core import lazy

LAZY = ["datasets", "model_selection", "printed", "reports", "statistics"]


@pytest.mark.parametrize("name", LAZY)
def test_every_public_name_can_be_imported(name):
    if name == "reports":
        pytest.importorskip("matplotlib")
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


@pytest.fixture
def without_an_extra(tmp_path, monkeypatch):
    """Return a package with a name whose module needs a package that is not installed."""
    (tmp_path / "lazy_sample").mkdir()
    (tmp_path / "lazy_sample" / "__init__.py").write_text(
        "from multilab.core.lazy import lazy_names\n"
        "__getattr__, __dir__, __all__ = lazy_names(__name__, {'needy': ['Needy'], 'plain': ['Plain']})\n"
    )
    (tmp_path / "lazy_sample" / "needy.py").write_text("import a_package_that_nobody_has\n")
    (tmp_path / "lazy_sample" / "plain.py").write_text("class Plain: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazy_sample")
    for name in [name for name in sys.modules if name.startswith("lazy_sample")]:
        del sys.modules[name]


def test_a_name_that_needs_a_package_is_absent_for_inspection_and_says_why_when_imported(without_an_extra):
    assert [name for name, _ in inspect.getmembers(without_an_extra, inspect.isclass)] == ["Plain"]
    assert "Plain" in pydoc.render_doc(without_an_extra)
    with pytest.raises(AttributeError, match="No module named 'a_package_that_nobody_has'"):
        _ = without_an_extra.Needy
    with pytest.raises(ModuleNotFoundError, match="No module named 'a_package_that_nobody_has'"):
        from lazy_sample import Needy  # noqa: F401


def test_methods_can_be_inspected_without_the_extras(monkeypatch):
    monkeypatch.setitem(sys.modules, "tabm", None)  # as where it is not installed
    for name in [name for name in sys.modules if name.startswith("multilab.methods.networks.tabm")]:
        monkeypatch.delitem(sys.modules, name)
    members = dict(inspect.getmembers(multilab.methods, inspect.isclass))
    assert "MLkNN" in members
    assert "TabM" not in members
    with pytest.raises(AttributeError, match=r"pip install .*(tabm|torch)"):
        _ = multilab.methods.TabM
    assert "MLkNN" in pydoc.render_doc(multilab.methods)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("multilab.AutoTable", "multilab.AutoMultiLabel"),
        ("multilab.methods.MLKNN", "multilab.methods.MLkNN"),
        ("multilab.metrics.bounds_of", "multilab.metrics.bounds"),
        ("multilab.datasets.card_named", "multilab.datasets.card"),
        ("multilab.statistics.best_k", "multilab.decision.best_k"),  # into another package
    ],
)
def test_an_old_name_of_a_package_warns_at_the_line_that_uses_it(monkeypatch, old, new):
    monkeypatch.setitem(lazy.RENAMED, old, (new, "0.4"))
    module, _, name = old.rpartition(".")
    package = importlib.import_module(module)
    with pytest.warns(FutureWarning, match=f"^{old} .* multilab 0.4; use {new}$") as warned:
        found = getattr(package, name)
    assert warned[0].filename == __file__
    home, _, current = new.rpartition(".")
    assert found is getattr(importlib.import_module(home), current)
    with pytest.warns(FutureWarning):
        exec(f"from {module} import {name}")
    assert name not in dir(package)
