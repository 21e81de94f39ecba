"""Models as skops files: no pickle, and no type that is not on the list of trusted types."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from pathlib import Path
from typing import Any

import skops.io
from sklearn.base import BaseEstimator

from multilab.core.text import comma_separated, excerpt
from multilab.models.errors import DeploymentError

__all__ = ["TRUSTED_VARIABLE", "dump_model", "is_trusted_class", "load_skops", "model_bytes", "untrusted_types"]

TRUSTED_VARIABLE = "MULTILAB_TRUSTED_TYPES"
"""Environment variable with further trusted types: dotted paths of your own classes, separated by commas."""

_PACKAGES = ("multilab.methods.", "multilab.decision.", "multilab.models.")
# scikit-learn's public estimators are trusted by skops itself; these are fitted parts of some of them.
_SKLEARN_PARTS = frozenset(
    {
        "scipy.sparse._csr.csr_array",  # training rows that a fitted model keeps
        "scipy.sparse._csr.csr_matrix",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.preprocessing._label.LabelBinarizer",
        "sklearn.tree._tree.Tree",
    }
)


def model_bytes(model: Any) -> bytes:
    """Return a fitted model as the content of a skops file.

    Raises
    ------
    DeploymentError
        The model holds something that a skops file cannot, or a type that loading would refuse.
    """
    try:
        content = skops.io.dumps(model)
    except Exception as error:  # of skops or of the json module, whatever the model holds
        raise DeploymentError(f"this model cannot be saved without pickle: {error}") from None
    _refuse_untrusted(untrusted_types(content), "the fitted model")
    return content


def dump_model(model: Any, path: Path) -> None:
    """Write a fitted model as a skops file, see :func:`model_bytes`."""
    path.write_bytes(model_bytes(model))


def load_skops(path: Path) -> Any:
    """Return the model of a skops file.

    Raises
    ------
    DeploymentError
        The file is damaged, or holds a type that is not trusted; nothing of the file is executed then.
    """
    try:
        content = path.read_bytes()
        foreign = untrusted_types(content)
    except OSError as error:
        raise DeploymentError(f"{path}: {error.strerror}") from None
    except Exception as error:  # a damaged archive, or JSON without end in it
        raise DeploymentError(f"{path}: not a skops file ({type(error).__name__}: {excerpt(str(error))})") from None
    _refuse_untrusted(foreign, str(path))
    try:
        return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    except Exception as error:  # whatever the constructors of trusted types raise for damaged content
        reason = f"{type(error).__name__}: {excerpt(str(error))}"
        raise DeploymentError(f"{path}: damaged ({reason}); fit the model again") from None


def untrusted_types(content: bytes) -> list[str]:
    """Return the types in a skops file that are not trusted, sorted.

    Trusted are what skops trusts (plain Python and NumPy types, scikit-learn's and SciPy's public ones), some parts of
    fitted scikit-learn estimators, the classes and functions that ``multilab.methods``, ``multilab.decision`` and
    ``multilab.models`` define, and the types that ``MULTILAB_TRUSTED_TYPES`` names.
    """
    own = _trusted_by_name()
    return sorted(
        name
        for name in skops.io.get_untrusted_types(data=content)
        if name not in own and name not in _SKLEARN_PARTS and not _is_defined_here(name)
    )


def is_trusted_class(name: str) -> bool:
    """Return whether settings of a foreign model may name a class: an estimator of scikit-learn, ours, or one trusted
    by name.
    """
    if name in _trusted_by_name() or _is_defined_here(name):
        return True
    module, _, attribute = name.rpartition(".")
    if not module.startswith("sklearn."):
        return False
    try:
        thing = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return inspect.isclass(thing) and issubclass(thing, BaseEstimator) and thing.__module__.startswith("sklearn.")


def _trusted_by_name() -> set[str]:
    return set(comma_separated(os.environ.get(TRUSTED_VARIABLE, "")))


@functools.cache
def _is_defined_here(name: str) -> bool:
    """Return whether our package defines a class or a function of this dotted name (and does not just import it).

    A package defines what its private modules do.
    """
    module, _, attribute = name.rpartition(".")
    if not f"{module}.".startswith(_PACKAGES):
        return False
    try:
        thing = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return False
    return thing.__module__ == module or thing.__module__.startswith(f"{module}._")


def _refuse_untrusted(foreign: list[str], where: str) -> None:
    if foreign:
        shown = ", ".join(excerpt(name) for name in foreign[:5])
        raise DeploymentError(
            f"{where} holds types that are not trusted: {shown}; if you know them, name them in {TRUSTED_VARIABLE} "
            "(separated by commas)"
        )
