# The class `Method` is part of the key of tuned cells: an edit of its code (not of its docstrings) recomputes them.
"""Methods as ``conf/method/*.yaml`` describes them."""

from __future__ import annotations

import functools
import os
import pydoc
import warnings
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Required, TypedDict, get_args

from msgspec import Meta

from multilab.core import OutsideCode, OutsideCodeError, code_digest, json_digest, outside_code
from multilab.core.settings import NOT_IN_FILE, convert
from multilab.experiments.chosen_metrics import chosen_metrics, names_in, package_nodes
from multilab.experiments.conf import named_file, read_settings
from multilab.experiments.errors import ExperimentError, UnseenInputWarning

__all__ = ["LIBRARIES", "METHOD_KEYS", "PREPROCESSING", "Method", "build", "class_names", "family_of", "load_method"]

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""The libraries whose versions are in every key."""

Preprocessing = Literal["none", "minmax", "standard"]
PREPROCESSING = get_args(Preprocessing)

_CODE_WITHIN = (
    *("multilab.decision", "multilab.methods", "multilab.metrics"),
    *("multilab.datasets.imbalance", "multilab.model_selection.iterative_stratification"),
)


class SearchSpace(TypedDict, total=False):
    """Values that a search tries for an argument."""

    type: Required[Literal["float", "int", "categorical"]]
    low: int | float
    high: int | float
    log: bool
    step: int | float
    choices: list[Any]


class InnerFolds(TypedDict, total=False):
    """Folds of out-of-fold scores."""

    folds: Annotated[int, Meta(ge=2)]
    order: Annotated[int, Meta(ge=1)]


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
    search : dict
        Search space (Optuna) by argument.
    check_params : dict
        Arguments that make the method fast in checks.
    seed_name : str
        Name from which the seeds are derived; default: the class path. A class that moves to another module keeps its
        numbers when its YAML names its first path.
    title, reference, notes, family, licence : str
        Display only; they reach neither the estimator nor the cell key.
    requires : str
        What ``pip install`` takes for an estimator of another library: ``xgboost-cpu``. Display only.
    """

    name: str = field(metadata=NOT_IN_FILE)
    target: str = field(metadata=NOT_IN_FILE)
    params: dict[str, Any] = field(default_factory=dict, metadata=NOT_IN_FILE)
    preprocessing: Preprocessing = "none"
    base_scores: tuple[str, ...] = ()
    member_params: dict[str, dict[str, Any]] = field(default_factory=dict, metadata=NOT_IN_FILE)
    inner_cv: InnerFolds = field(default_factory=lambda: InnerFolds(folds=5, order=1))
    save_attributes: tuple[str, ...] = ()
    search: dict[str, SearchSpace] = field(default_factory=dict)
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
        """Build a method from the content of its YAML.

        Keys that are none of :data:`METHOD_KEYS` are arguments of the estimator, whose signature decides about them.

        Raises
        ------
        ExperimentError
            If there is no ``_target_``, a value has a wrong type, or a key inside one is unknown: names the file and
            the place in it.
        """
        where, params = f"conf/method/{name}.yaml", dict(mapping)
        target = params.pop("_target_", None)
        if not isinstance(target, str):
            raise ExperimentError(f"{where}: no _target_; name the estimator class there")
        own = {key: params.pop(key) for key in METHOD_KEYS if key in params}
        own = {"title": name} | {key: value for key, value in own.items() if value is not None}
        return convert(own, cls, where, error=ExperimentError, name=name, target=target, params=params)

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


def build(method: Method) -> Any:
    """Build the estimator of a method from its settings, nested ``_target_`` entries first.

    Without Hydra, which the core installation does not have; only settings that use more of it than ``_target_``
    (``_partial_``, ``_args_``) are left to Hydra. Cells use ``fitting.build``, whose code is in their keys; a test
    compares the two.

    Raises
    ------
    ExperimentError
        There is no such class, or it refuses its arguments.
    """
    own = {name: value for name, value in method.identity().items() if "__" not in name}
    nested = {name: value for name, value in method.params.items() if "__" in name}
    if _uses_more_of_hydra(own):
        from multilab.experiments import fitting

        return fitting.build(method)
    estimator = None
    try:
        estimator = _built(own)
        return estimator.set_params(**nested)
    except Exception as error:  # whatever a constructor raises
        if estimator is not None and isinstance(error, AttributeError):
            raise  # no estimator of scikit-learn
        reason = " ".join(str(error).split())
        raise ExperimentError(f"conf/method/{method.name}.yaml: cannot build {method.target}: {reason}") from None


def _built(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_built(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    arguments = {name: _built(item) for name, item in value.items() if name != "_target_"}
    if "_target_" not in value:
        return arguments
    target = pydoc.locate(value["_target_"])
    if target is None:
        raise ExperimentError(f"there is no {value['_target_']}")
    return target(**arguments)  # type: ignore[operator]


def _uses_more_of_hydra(value: Any) -> bool:
    if isinstance(value, Mapping):
        more = any(name.startswith("_") and name.endswith("_") and name != "_target_" for name in map(str, value))
        return more or any(map(_uses_more_of_hydra, value.values()))
    return isinstance(value, list | tuple) and any(map(_uses_more_of_hydra, value))


METHOD_KEYS = tuple(one.name for one in fields(Method) if one.metadata.get("in_file", True))
"""Keys of a method's YAML that are no arguments of its estimator."""

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
    return Method.from_mapping(name, read_settings("method", name))
