# The class `Method` is part of the key of tuned cells: an edit of its code (not of its docstrings) recomputes them.
"""Methods as ``conf/method/*.yaml`` describes them."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from multilab.core import OutsideCode, OutsideCodeError, code_digest, json_digest, outside_code
from multilab.experiments.chosen_metrics import chosen_metrics, names_in, package_nodes
from multilab.experiments.conf import named_file, read_settings
from multilab.experiments.errors import ExperimentError, UnseenInputWarning
from multilab.experiments.method_file import check_method_file

__all__ = ["DISPLAY", "LIBRARIES", "PREPROCESSING", "Method", "class_names", "family_of", "load_method"]

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""The libraries whose versions are in every key."""

PREPROCESSING = ("none", "minmax", "standard")

DISPLAY = ("title", "reference", "notes", "family", "licence", "requires")
"""Keys of a method's YAML that reach neither the estimator nor the key of a cell."""

_TYPES: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("base_scores", "save_attributes"), (Sequence, "a list")),
    **dict.fromkeys(("inner_cv", "search", "check_params"), (Mapping, "a mapping")),
}

_CODE_WITHIN = (
    *("multilab.decision", "multilab.methods", "multilab.metrics"),
    *("multilab.datasets.imbalance", "multilab.model_selection.iterative_stratification"),
)


@dataclass(frozen=True)
class Method:
    """A method: the settings of its estimator and of the steps around it.

    Attributes
    ----------
    name : str
        Stem of ``conf/method/<name>.yaml``.
    target : str
        Dotted path of the estimator class.
    params : dict
        Arguments of the estimator; nested ``_target_`` entries are built first.
    preprocessing : {"none", "minmax", "standard"}
        Scaling of X, fitted on the training set.
    base_scores : tuple of str
        Methods whose out-of-fold scores are this method's input instead of X.
    member_params : dict
        Arguments that a study changes of methods in ``base_scores``, by method.
    inner_cv : dict
        ``{folds, order}`` of the out-of-fold scores.
    save_attributes : tuple of str
        Fitted attributes that are stored with the cell.
    search, check_params : dict
        Search space (Optuna) and arguments that make the method fast in checks.
    seed_name : str
        Name that the seeds are derived from: ``seed_name`` of the YAML, else the class path. A class that moves to
        another module keeps its numbers when its YAML names its first path.
    title, reference, notes, family, licence : str
        Display only; they reach neither the estimator nor the cell key.
    requires : str
        What ``pip install`` gets for the estimator, if it is of another library: ``multilab[arena]``. Display only.
    """

    name: str
    target: str
    params: dict[str, Any] = field(default_factory=dict)
    preprocessing: str = "none"
    base_scores: tuple[str, ...] = ()
    member_params: dict[str, dict[str, Any]] = field(default_factory=dict)
    inner_cv: dict[str, Any] = field(default_factory=lambda: {"folds": 5, "order": 1})
    save_attributes: tuple[str, ...] = ()
    search: dict[str, Any] = field(default_factory=dict)
    check_params: dict[str, Any] = field(default_factory=dict)
    seed_name: str = ""
    title: str = ""
    reference: str = ""
    notes: str = ""
    family: str = ""
    licence: str = ""
    requires: str = ""

    def __post_init__(self) -> None:
        if not self.seed_name:
            object.__setattr__(self, "seed_name", self.target)

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any]) -> Method:
        """Build a method from the content of its YAML."""
        values = dict(mapping)
        for key, (kind, described) in _TYPES.items():
            value = values.get(key)
            if value is not None and (isinstance(value, str) or not isinstance(value, kind)):
                raise ExperimentError(f"conf/method/{name}.yaml: {key} must be {described}, not {value!r}")
        target = values.pop("_target_", None)
        if not isinstance(target, str):
            raise ExperimentError(f"conf/method/{name}.yaml: no _target_; name the estimator class there")
        fields: dict[str, Any] = {}
        for key in ("preprocessing", "inner_cv", "search", "check_params", "seed_name", *DISPLAY):
            if values.get(key) is not None:
                fields[key] = values[key]
            values.pop(key, None)
        for key in ("base_scores", "save_attributes"):
            fields[key] = tuple(values.pop(key, None) or ())
        scaling = fields.get("preprocessing", "none")
        if scaling not in PREPROCESSING:
            raise ExperimentError(f"conf/method/{name}.yaml: preprocessing {scaling!r} is not none, minmax or standard")
        return cls(name=name, target=target, params=values, **{"title": name, **fields})

    def with_params(self, changes: Mapping[str, Any]) -> Method:
        """Return the method with some arguments changed; ``preprocessing`` and ``base_scores`` may be among them."""
        changes = dict(changes)
        scaling = changes.pop("preprocessing", self.preprocessing)
        base_scores = tuple(changes.pop("base_scores", self.base_scores))
        return replace(self, params={**self.params, **changes}, preprocessing=scaling, base_scores=base_scores)

    def identity(self) -> dict[str, Any]:
        """Return the settings that affect the fitted estimator."""
        return {"_target_": self.target, **self.params}

    def key_settings(self) -> dict[str, Any]:
        """Return the identity without the modules of classes in files, which their digests identify."""
        return _without_modules(self.identity(), set(self._outside_code.files))

    def code(self) -> str:
        """Return the digests of the code in files that the settings name: of ``multilab.methods`` and of your files."""
        files = self._outside_code.files
        digests = [
            files.get(target) or _code(target) for target in class_names(self.identity()) if _in_file(target, files)
        ]
        return "-".join(dict.fromkeys(digest[:16] for digest in digests))

    def metrics(self, with_search: bool = False) -> frozenset[str]:
        """Return the metrics by which the estimator chooses, looked up by name.

        Parameters
        ----------
        with_search : bool
            Whether the search space may name the metric, too.
        """
        own = frozenset(names_in([self.identity(), self.search if with_search else None]))
        inside = [target for target in class_names(self.identity()) if target.startswith("multilab.")]
        chosen = [_package_metrics(target, own) for target in inside]
        return frozenset().union(chosen_metrics(self._outside_code.nodes, own), *chosen)

    def environment(self) -> dict[str, str | None]:
        """Return the environment variables that your files read by a literal name: digests of their values.

        Values may be secret and a key is not, so that they are not written down.
        """
        values = {name: os.environ.get(name) for name in self._outside_code.environment}
        return {name: value if value is None else json_digest(value)[:16] for name, value in values.items()}

    def distributions(self) -> dict[str, str]:
        """Return the versions of the installed distributions that the settings name, except :data:`LIBRARIES`."""
        return self._outside_code.distributions

    def check_installed(self) -> None:
        """Raise an ExperimentError with the install command if packages of the settings are missing.

        A method without ``requires`` says nothing: the error of its import does.
        """
        tops = dict.fromkeys(target.partition(".")[0] for target in class_names(self.identity()))
        missing = [top for top in tops if self.requires and find_spec(top) is None]
        if missing:
            packages = self.requires if " " in self.requires else f"'{self.requires}'"
            verb = "is" if len(missing) == 1 else "are"
            names = ", ".join(missing)
            raise ExperimentError(f"method {self.name}: {names} {verb} not installed: pip install {packages}")

    @functools.cached_property
    def _outside_code(self) -> OutsideCode:
        self.check_installed()
        targets = tuple(target for target in class_names(self.identity()) if not target.startswith("multilab."))
        if targets in _installed:
            return _installed[targets]
        try:
            outside = outside_code(targets, known=LIBRARIES)
        except OutsideCodeError as error:
            raise ExperimentError(f"conf/method/{self.name}.yaml: {error}") from None
        _warn_of_unseen(outside.unseen)
        if not outside.files:  # unlike files, installed versions stay as they are while a process runs
            _installed[targets] = outside
        return outside


_installed: dict[tuple[str, ...], OutsideCode] = {(): OutsideCode({}, {})}


@functools.lru_cache(maxsize=256)
def _code(target: str) -> str:
    return code_digest(target, within=_CODE_WITHIN)


@functools.lru_cache(maxsize=1024)
def _package_metrics(target: str, settings: frozenset[str]) -> frozenset[str]:
    return chosen_metrics(package_nodes(target, _CODE_WITHIN), settings)


@functools.lru_cache(maxsize=256)
def _warn_of_unseen(unseen: tuple[str, ...]) -> None:
    """Warn once, in one line, about inputs of user files that no key covers."""
    if unseen:
        more = f" (and {len(unseen) - 1} more)" if len(unseen) > 1 else ""
        warnings.warn(f"{unseen[0]}{more}; a change of what it reads moves no key", UnseenInputWarning, stacklevel=2)


def _in_file(target: str, files: Container[str]) -> bool:
    return target.startswith("multilab.") or target in files


def _without_modules(value: Any, files: Container[str]) -> Any:
    """Return settings with the name of every class in a file instead of its path."""
    if isinstance(value, Mapping):
        key = "path" if value.get("_target_") in _LOOKUPS else "_target_"
        named = {name: _without_modules(item, files) for name, item in value.items()}
        target = value.get(key)
        return named | ({key: target.rpartition(".")[2]} if isinstance(target, str) and _in_file(target, files) else {})
    return [_without_modules(item, files) for item in value] if isinstance(value, list | tuple) else value


_LOOKUPS = (
    "hydra.utils.get_class",
    "hydra.utils.get_method",
    "hydra.utils.get_static_method",
    "hydra.utils.get_object",
)


def class_names(value: Any) -> list[str]:
    """Return the names in ``_target_`` anywhere in a setting, in order of appearance."""
    targets: list[str] = []
    if isinstance(value, Mapping):
        target = value.get("_target_")
        if target in _LOOKUPS:
            target = value.get("path")
        if isinstance(target, str):
            targets.append(target)
        for item in value.values():
            targets += class_names(item)
    elif isinstance(value, list | tuple):
        for item in value:
            targets += class_names(item)
    return list(dict.fromkeys(targets))


def family_of(method: Method) -> str:
    """Return the family in the method's YAML, else the package of its last estimator: ``neighbours``, ``sklearn``."""
    if method.family:
        return method.family
    targets = class_names(method.identity())
    if targets[0].startswith("multilab.decision."):
        return "decision"
    own = [target for target in targets if target.startswith("multilab.methods.")]
    return own[0].split(".")[2] if own else targets[0].split(".")[0]


def load_method(name: str) -> Method:
    """Read ``conf/method/<name>.yaml``, or the file whose path is given (``./my_method.yaml``)."""
    name = named_file("method", name)
    settings = read_settings("method", name)
    check_method_file(name, settings)
    return Method.from_mapping(name, settings)
