"""Code outside the package: a change of it is a new key and a new number, or it is refused."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from helpers.keys import PART, raise_version
from multilab.cells.cell import Cell, split_refs
from multilab.cells.cell_metrics import _metrics_file
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method
from multilab.cells.running import run_cell
from multilab.cells.store import Store
from multilab.core import versions
from multilab.methods import ELM, MLkNN
from multilab.metrics import METRICS, registry

OWN = """
import numpy as np
from {helper} import SHIFT

class Own:
    def __init__(self, a=1):
        self.a = a

    def get_params(self, deep=True):
        return {{"a": self.a}}

    def set_params(self, **params):
        return self

    def fit(self, X, y):
        self.p = np.asarray(y).mean(axis=0)
        return self

    def predict_with_scores(self, X):
        scores = np.tile(np.abs(SHIFT - self.p), (X.shape[0], 1))
        return scores, scores >= 0.5
"""


@pytest.fixture(autouse=True)
def _forget():
    yield
    versions.reached.cache_clear()
    versions._versions.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of one's own on the Python path: a package ``mypkg`` and a module ``mymodule`` with a neighbour."""
    for name, text in {
        "mypkg/__init__.py": "",
        "mypkg/own.py": OWN.format(helper="mypkg.deep.helper"),
        "mypkg/deep/__init__.py": "",
        "mypkg/deep/helper.py": "SHIFT = 0\n",
        "mypkg/unrelated.py": "VALUE = 1\n",
        "mymodule.py": OWN.format(helper="myhelper"),
        "myhelper.py": "SHIFT = 0\n",
        "other.py": "VALUE = 1\n",
    }.items():
        (tmp_path / "path" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "path" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    yield tmp_path / "path"
    for name in [name for name in sys.modules if name.startswith(("my", "fakelib"))]:
        del sys.modules[name]


def key(target, **params):
    return Cell("train", PART, Method("own", target, params)).key


def edit(file, old, new, keep_time=False):
    """Edit a file, and forget its module as a new process would."""
    stat = file.stat()
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    if keep_time:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for name in [name for name in sys.modules if name.startswith("my")]:
        del sys.modules[name]
    for compiled in file.parent.glob("__pycache__/*.pyc"):
        compiled.unlink()
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("target", "file", "old", "new", "keep_time"),
    [
        ("mypkg.own.Own", "mypkg/own.py", "np.abs(SHIFT - self.p)", "1 - self.p", False),
        ("mypkg.own.Own", "mypkg/deep/helper.py", "SHIFT = 0", "SHIFT = 1", False),
        ("mypkg.own.Own", "mypkg/deep/helper.py", "SHIFT = 0", "SHIFT = 1", True),
        ("mymodule.Own", "mymodule.py", "np.abs(SHIFT - self.p)", "1 - self.p", False),
        ("mymodule.Own", "myhelper.py", "SHIFT = 0", "SHIFT = 1", True),
    ],
)
def test_an_edited_method_of_ones_own_has_a_new_number(folder, tmp_path, target, file, old, new, keep_time):
    def scores():
        cell = Cell("train", split_refs("scenario3", {"kfold": 3, "stratify": 1, "seed": 0})[0], Method("own", target))
        assert run_cell(cell, store) is None
        return store.arrays(cell.key)["scores"]

    store = Store(tmp_path / "cells")
    before = scores()
    edit(folder / file, old, new, keep_time)
    after = scores()
    assert (before + after).round(12).tolist() == (0 * after + 1).tolist()


@pytest.mark.parametrize("target", ["mypkg.own.Own", "mymodule.Own"])
def test_files_that_are_not_imported_move_no_key(folder, target):
    before = key(target)
    edit(folder / "mypkg/unrelated.py", "1", "2")
    edit(folder / "other.py", "1", "2")
    assert key(target) == before


def test_a_file_that_changes_after_it_was_imported_is_refused(folder):
    """Its old code would compute a result under its new key."""
    before = key("mymodule.Own")
    assert key("mymodule.Own") == before
    file = folder / "myhelper.py"
    file.write_text("SHIFT = 1\n")
    with pytest.raises(ExperimentError):
        key("mymodule.Own")
    file.write_text("SHIFT = 0\n")
    assert key("mymodule.Own") == before


def test_the_init_of_a_package_and_an_import_that_appears_count(folder):
    before = key("mypkg.own.Own")
    (folder / "mypkg/__init__.py").write_text("import numpy\nVALUE = numpy.pi\n")
    initialised = key("mypkg.own.Own")
    edit(
        folder / "mypkg/own.py",
        "import numpy as np",
        "import numpy as np\ntry:\n    import myextra\nexcept ImportError: ...",
    )
    without = key("mypkg.own.Own")
    (folder / "myextra.py").write_text("VALUE = 1\n")
    assert len({before, initialised, without, key("mypkg.own.Own")}) == 4


def test_a_class_that_the_package_init_re_exports_is_followed(folder):
    (folder / "mypkg/__init__.py").write_text("from .own import Own\n")
    before = key("mypkg.Own")
    edit(folder / "mypkg/deep/helper.py", "SHIFT = 0", "SHIFT = 1")
    assert key("mypkg.Own") != before


@pytest.mark.parametrize(
    "inside",
    [
        "from multilab.methods.neighbours.mlknn import MLkNN\nOwn = MLkNN\n",
        "from multilab.methods import MLkNN\nclass Own(MLkNN): ...\n",
        "from multilab.methods import MLkNN as Base\nclass Own(Base): ...\n",
        "import multilab.methods\nclass Own(multilab.methods.MLkNN): ...\n",
        "from multilab import methods as m\ndef Own():\n    return m.MLkNN(k=3)\n",
        "import multilab as lab\ndef Own():\n    return lab.methods.MLkNN(k=3)\n",
        "def Own():\n    from multilab.methods import MLkNN\n    return MLkNN(k=3)\n",
        "import myinner\nclass Own:\n    def fit(self, X, y):\n        return myinner.inner(X)\n",
    ],
)
def test_a_method_of_the_package_inside_one_of_ones_own_is_followed(folder, monkeypatch, inside):
    (folder / "mymodule.py").write_text(inside)
    (folder / "myinner.py").write_text("from multilab.methods import MLkNN\ndef inner(X):\n    return MLkNN(k=3)\n")
    before = key("mymodule.Own")
    raise_version(monkeypatch, MLkNN)
    moved = key("mymodule.Own")
    assert moved != before
    raise_version(monkeypatch, ELM)
    assert key("mymodule.Own") == moved, "another method does not count"


@pytest.mark.parametrize(
    "params",
    [
        {"estimator": {"_target_": "mypkg.own.Own"}},
        {"steps": [["classify", {"_target_": "mypkg.own.Own"}]]},
        {"kernel": {"_target_": "hydra.utils.get_method", "path": "mypkg.own.Own"}},
    ],
)
def test_a_target_is_found_anywhere_in_the_settings(folder, params):
    before = key("multilab.methods.transformation.binary_relevance.BinaryRelevance", **params)
    edit(folder / "mypkg/own.py", "self.a = a", "self.a = a + 1")
    assert key("multilab.methods.transformation.binary_relevance.BinaryRelevance", **params) != before


def install(folder, version, listed="fakelib/__init__.py,,\nfakelib/core.py,,\n"):
    """Install a distribution ``fake-lib`` with the module ``fakelib`` into a folder, as pip would."""
    (folder / "fakelib").mkdir(parents=True, exist_ok=True)
    (folder / "fakelib/__init__.py").write_text("from fakelib.core import Fake\n")
    (folder / "fakelib/core.py").write_text("class Fake: ...\n")
    for old in folder.glob("fake_lib-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    info = folder / f"fake_lib-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-lib\nVersion: {version}\n")
    (info / "RECORD").write_text(listed)
    (info / "top_level.txt").write_text("fakelib\n")


def in_a_new_process(folder, target):
    """Return the identity of a target, as a new process finds it: installed versions are read once per process."""
    method = f"from multilab.cells.method import Method; m = Method('own', {target!r})"
    code = f"{method}; print(m.outside.distributions, *m.outside.files.values())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_the_version_of_an_installed_distribution_is_in_the_key(folder):
    install(folder, "1.0")
    assert in_a_new_process(folder, "fakelib.Fake") == "{'fake-lib': '1.0'}\n"
    (folder / "mymodule.py").write_text("def Own():\n    import fakelib\n    return fakelib.Fake()\n")
    before = in_a_new_process(folder, "mymodule.Own")
    install(folder, "1.1")
    assert in_a_new_process(folder, "fakelib.Fake") == "{'fake-lib': '1.1'}\n"
    assert "'fake-lib': '1.1'" in in_a_new_process(folder, "mymodule.Own") != before


def test_an_editable_install_counts_as_files(folder):
    install(folder, "1.0", listed="__editable__.fake_lib-1.0.pth,,\n")
    before = in_a_new_process(folder, "fakelib.Fake")
    assert before.startswith("{} ")
    (folder / "fakelib/core.py").write_text("class Fake:\n    a = 1\n")
    assert in_a_new_process(folder, "fakelib.Fake") != before


def test_a_library_whose_version_is_in_every_key_adds_nothing(folder):
    assert Method("own", "sklearn.tree.DecisionTreeClassifier").outside.distributions == {}
    assert Method("own", "sklearn.pipeline.Pipeline", {"a": {"_target_": "numpy.zeros"}}).outside.distributions == {}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("__main__.Own", "only code in a module can be identified"),
        ("nosuchpackage.own.Own", "no module 'nosuchpackage' is found"),
        ("mycompiled.Own", "is compiled and in no installed distribution"),
        ("mypkg.broken.Own", "cannot read"),
    ],
)
def test_code_that_cannot_be_identified_is_refused_in_one_line(folder, target, message):
    (folder / "mycompiled.cpython-0.so").write_bytes(b"\\x7fELF")
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        (folder / f"mycompiled{suffix}").write_bytes(b"\\x7fELF")
    (folder / "mypkg/broken.py").write_text("def f(:\n")
    with pytest.raises(ExperimentError, match=message) as caught:
        key(target)
    assert "\n" not in str(caught.value)
    assert "conf/method/own.yaml" in str(caught.value)


def test_the_same_module_in_another_folder_has_the_same_key(folder, tmp_path, monkeypatch):
    before = replace(Cell("train", PART, Method("own", "mymodule.Own"))).key
    for name in ("mymodule.py", "myhelper.py"):
        (tmp_path / name).write_text((folder / name).read_text())
        (folder / name).unlink()
        del sys.modules[name.removesuffix(".py")]
    monkeypatch.syspath_prepend(str(tmp_path))
    assert key("mymodule.Own") == before


def test_a_module_imported_by_a_literal_name_is_followed(folder):
    edit(
        folder / "mymodule.py",
        "from myhelper import SHIFT",
        "import importlib\nSHIFT = importlib.import_module('other').VALUE",
    )
    before = key("mymodule.Own")
    edit(folder / "other.py", "VALUE = 1", "VALUE = 0")
    assert key("mymodule.Own") != before


CHOOSING = """
{imports}

class Own:
    def __init__(self, metric="macro_f1"):
        self.metric = metric

    def fit(self, X, y):
        self.value = {use}
"""


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from multilab.metrics import get_scorer", "get_scorer(self.metric)"),
        ("from multilab.metrics import score_all", "score_all(y, X)[self.metric]"),
        ("from multilab.metrics import macro_f1", "macro_f1(y, X)"),
    ],
)
def test_the_versions_of_the_metrics_that_a_method_of_ones_own_chooses_by_are_in_its_key(
    folder, monkeypatch, imports, use
):
    (folder / "mymodule.py").write_text(CHOOSING.format(imports=imports, use=use))
    before = key("mymodule.Own")
    raise_version(monkeypatch, METRICS["hamming_loss"].formula)
    assert key("mymodule.Own") == before
    raise_version(monkeypatch, METRICS["macro_f1"].formula)
    raise_version(monkeypatch, METRICS["macro_f1"].function)
    assert key("mymodule.Own") != before


def test_a_method_of_ones_own_that_names_no_metric_chooses_by_all(folder, monkeypatch):
    text = CHOOSING.format(imports="from multilab.metrics import get_scorer", use="get_scorer(max('a', 'b'))")
    (folder / "mymodule.py").write_text(text.replace('"macro_f1"', "None"))
    keys = key("mymodule.Own"), key("mymodule.Own", metric="jaccard")
    raise_version(monkeypatch, METRICS["coverage"].formula)
    assert key("mymodule.Own") != keys[0]
    assert key("mymodule.Own", metric="jaccard") == keys[1]


def test_kept_metrics_follow_the_files_that_a_metric_of_ones_own_imports(folder, tmp_path, monkeypatch):
    def kept(shift):
        (folder / "myhelper.py").write_text(f"SHIFT = {shift}\n")
        (folder / "mymetric.py").write_text(
            "from multilab.metrics.registry import metric\nfrom myhelper import SHIFT\n"
            "@metric('Mine', 'max', 'decisions', source='a test')\n"
            "def mine(counts, conventions):\n    'Return the share of wrong cells, shifted.'\n"
            "    return counts.share_wrong + SHIFT\n"
        )
        importlib.invalidate_caches()
        importlib.import_module("mymetric")
        file = _metrics_file("0" * 64, Store(tmp_path), "default")
        for table in (registry._ALL, registry._STANDARD):
            table.pop("mine")
        del sys.modules["mymetric"], sys.modules["myhelper"]
        return file

    without = _metrics_file("0" * 64, Store(tmp_path), "default")
    assert len({without, kept(1), kept(22)}) == 3
    assert kept(1) == kept(1)
