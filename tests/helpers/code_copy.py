"""An editable copy of the package's source, from which keys are computed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from multilab.core import code_digests
from multilab.experiments import analyses as units
from multilab.experiments import cells, chosen_metrics, method
from multilab.experiments.cells import SplitRef

PART = SplitRef("toy", "0" * 64, "{}", 0, "1" * 64)


def forget() -> None:
    """Forget what this process read of the code, as a new process would not know it."""
    for module in (cells, chosen_metrics, method, units, code_digests):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.fixture(scope="module")
def package_copy(tmp_path_factory, checkout):
    """A copy of the package that keys are computed from."""
    root = tmp_path_factory.mktemp("copy") / "multilab"
    shutil.copytree(checkout / "src" / "multilab", root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def source(package_copy, monkeypatch):
    """A function that replaces a text that occurs once in the copy, undone after the test."""
    changed = {}

    def edit(old: str, new: str, folder: str = "experiments") -> Path:
        files = [path for path in sorted((package_copy / folder).rglob("*.py")) if old in path.read_text()]
        assert len(files) == 1, f"{old!r} is in {len(files)} files"
        (file,) = files
        assert file.read_text().count(old) == 1
        changed.setdefault(file, file.read_text())
        file.write_text(file.read_text().replace(old, new))
        forget()
        return file

    monkeypatch.setattr(code_digests, "_PACKAGE", package_copy)
    forget()
    yield edit
    for file, text in changed.items():
        file.write_text(text)
    monkeypatch.undo()
    forget()
