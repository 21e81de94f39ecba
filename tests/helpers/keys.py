"""What tests of keys share."""

from __future__ import annotations

from multilab.cells.cell import SplitRef
from multilab.core import versions

PART = SplitRef("toy", "0" * 64, "{}", 0, "1" * 64)


def raise_version(monkeypatch, thing, version=2):
    """Raise the declared version of a class, a function or a module, as a new process would find it."""
    name = "RESULTS_VERSION" if isinstance(thing, type(versions)) else "results_version"
    monkeypatch.setattr(thing, name, version, raising=False)
    versions._versions.cache_clear()
