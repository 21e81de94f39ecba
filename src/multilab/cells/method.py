"""Methods as ``conf/method/*.yaml`` describes them."""

from __future__ import annotations

import functools
import inspect
import json
import pydoc
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Required, TypedDict, get_args

from msgspec import Meta

from multilab.cells.conf import named_file, read_settings
from multilab.cells.errors import ExperimentError
from multilab.core import OutsideCode, OutsideCodeError, canonical_json, declared_versions, outside_code
from multilab.core.settings import NOT_IN_FILE, convert
from multilab.core.versions import reached, strings_in
from multilab.metrics.registry import ALL_METRICS, defined, find_metric, paper_metrics
from multilab.metrics.scoring import score_all

__all__ = [
    "LIBRARIES",
    "METHOD_KEYS",
    "PREPROCESSING",
    "Method",
    "build",
    "class_names",
    "family_of",
    "gate_case_name",
    "load_method",
    "without_gate_case",
]

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""The libraries whose versions, by their first two numbers, are in every key."""

Preprocessing = Literal["none", "minmax", "standard", "tfidf"]
PREPROCESSING = get_args(Preprocessing)


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
    preprocessing : {"none", "minmax", "standard", "tfidf"}
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
        settings = {key: params.pop(key) for key in METHOD_KEYS if key in params}
        settings = {"title": name} | {key: value for key, value in settings.items() if value is not None}
        return convert(settings, cls, where, error=ExperimentError, name=name, target=target, params=params)

    def with_params(self, changes: Mapping[str, Any]) -> Method:
        """Return the method with some arguments changed; ``preprocessing`` and ``base_scores`` may be among them."""
        changes = dict(changes)
        scaling = changes.pop("preprocessing", self.preprocessing)
        base_scores = tuple(changes.pop("base_scores", self.base_scores))
        return replace(self, params={**self.params, **changes}, preprocessing=scaling, base_scores=base_scores)

    def identity(self) -> dict[str, Any]:
        """Return the settings that affect the fitted estimator."""
        return {"_target_": self.target, **self.params}

    @functools.cached_property
    def key_settings(self) -> dict[str, Any]:
        """The arguments that differ from the defaults of their class, of classes in files without the module."""
        settings: dict[str, Any] = _without_defaults(self.identity(), set(self.outside.files))
        return settings

    def code(self, steps: Collection[Any] = ()) -> list[Any]:
        """Return the classes that the settings name, the metrics these choose by, and further steps.

        A class that looks metrics up chooses by those that the settings, defaults included, or its code name; by all
        if there are none.

        Parameters
        ----------
        steps : collection
            Further classes and functions that compute a result of the method.
        """
        names = class_names(self.identity())
        classes = [located(name) for name in names]
        metrics = named_metrics({*names_in(self.identity()), *names_in([_defaults(name) for name in names])})
        code = reached(tuple(classes), self.outside.modules)
        if any(thing in (defined, find_metric, score_all) for thing in code if callable(thing)):
            metrics += named_metrics(set(strings_in(code, "multilab.metrics"))) or (
                [] if metrics else named_metrics(ALL_METRICS)
            )
        return [*classes, *metrics, *steps]

    def versions(self, steps: Collection[Any] = ()) -> dict[str, list[int]]:
        """Return the declared versions of `code`."""
        return declared_versions(self.code(steps), self.outside.modules)

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
    def outside(self) -> OutsideCode:
        """The distributions, except :data:`LIBRARIES`, and the user's files that the settings name."""
        self.check_installed()
        targets = tuple(target for target in class_names(self.identity()) if not target.startswith("multilab."))
        if targets in _installed:
            return _installed[targets]
        try:
            outside = outside_code(targets, known=LIBRARIES)
        except OutsideCodeError as error:
            raise ExperimentError(f"conf/method/{self.name}.yaml: {error}") from None
        if not outside.files:  # unlike files, installed versions stay as they are while a process runs
            _installed[targets] = outside
        return outside


def build(method: Method) -> Any:
    """Build the estimator of a method from its settings, nested ``_target_`` entries first.

    The settings mean what they mean to `hydra.utils.instantiate`, with ``_args_``, ``_partial_`` and
    ``hydra.utils.get_class``. Hydra itself is not needed: an installation that only predicts does not have it.

    Raises
    ------
    ExperimentError
        There is no such class, or it refuses its arguments.
    """
    settings = {name: value for name, value in method.identity().items() if "__" not in name}
    nested = {name: value for name, value in method.params.items() if "__" in name}
    estimator = None
    try:
        estimator = _built(settings)
        return estimator.set_params(**nested)
    except Exception as error:  # whatever a constructor raises
        if estimator is not None and isinstance(error, AttributeError):
            raise  # no estimator of scikit-learn
        reason = " ".join(str(error.__cause__ or error).split())
        raise ExperimentError(f"conf/method/{method.name}.yaml: cannot build {method.target}: {reason}") from None


def _built(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_built(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "_target_" not in value:
        return {name: _built(item) for name, item in value.items()}
    if value["_target_"] in _LOOKUPS:
        return located(value["path"])
    if unknown := [name for name in map(str, value) if name in ("_recursive_", "_convert_")]:
        raise ExperimentError(f"{unknown[0]} of Hydra has no meaning for a method")
    arguments = {name: _built(item) for name, item in value.items() if name not in _OF_HYDRA}
    call = functools.partial(located(value["_target_"]), *map(_built, value.get("_args_", ())), **arguments)
    return call if value.get("_partial_") else call()


def located(target: str) -> Any:
    """Return the class or function of a dotted name.

    Raises
    ------
    ExperimentError
        There is none, or its module cannot be imported.
    ModuleNotFoundError
        A module of this package needs a library that is not installed; the command line names it.
    """
    try:
        thing = pydoc.locate(target)
    except pydoc.ErrorDuringImport as error:
        if target.startswith("multilab.") and isinstance(error.value, ModuleNotFoundError):
            raise error.value from None
        raise ExperimentError(f"{target} cannot be imported: {' '.join(str(error.value).split())[:300]}") from None
    if thing is None:
        raise ExperimentError(f"there is no {target}")
    return thing


_OF_HYDRA = ("_target_", "_args_", "_partial_")


@functools.lru_cache(maxsize=64)
def _makes_dense(target: str, params: str) -> bool:
    estimator = build(Method("dense", target, json.loads(params)))
    parts = [estimator, *(value for value in estimator.get_params().values() if hasattr(value, "fit"))]
    return any(getattr(part, "_makes_dense", False) for part in parts)


def makes_dense(method: Method) -> bool:
    """Return whether the estimator of a method, or one that it wraps, makes sparse features dense."""
    return _makes_dense(method.target, json.dumps(method.params, sort_keys=True, default=str))


METHOD_KEYS = tuple(setting.name for setting in fields(Method) if setting.metadata.get("in_file", True))
"""Keys of a method's YAML that are no arguments of its estimator."""

_installed: dict[tuple[str, ...], OutsideCode] = {(): OutsideCode({}, {})}


def _defaults(target: str) -> dict[str, Any]:
    """Return the default arguments of a class or function."""
    try:
        parameters = inspect.signature(located(target)).parameters.values()
    except (TypeError, ValueError):  # a function of a compiled module may have no signature
        return {}
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}


def _without_defaults(value: Any, files: Container[str]) -> Any:
    """Return settings without arguments equal to their default, and with the name of a class in a file for its path."""
    if isinstance(value, list | tuple):
        return [_without_defaults(item, files) for item in value]
    if not isinstance(value, Mapping):
        return value
    targets = class_names({name: item for name, item in value.items() if not isinstance(item, Mapping | list | tuple)})
    defaults = _defaults(targets[0]) if "_target_" in value and targets else {}
    # A class that gets a new argument with a default keeps its stored results.
    changed = {name: item for name, item in value.items() if name not in defaults or not _same(item, defaults[name])}
    named = {name: _without_defaults(item, files) for name, item in changed.items()}
    key = "path" if value.get("_target_") in _LOOKUPS else "_target_"
    if isinstance(target := value.get(key), str) and (target.startswith("multilab.") or target in files):
        # Without the module, so that a class that moves keeps its stored results.
        named[key] = target.rpartition(".")[2]
    return named


def _same(value: Any, default: Any) -> bool:
    try:
        return canonical_json(value) == canonical_json(default)
    except (TypeError, ValueError):  # an object, or NaN
        return False


def names_in(settings: Any) -> Iterator[str]:
    """Yield the strings anywhere in settings."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, Mapping | list | tuple):
        for item in settings.values() if isinstance(settings, Mapping) else settings:
            yield from names_in(item)


def named_metrics(names: Collection[str]) -> list[Any]:
    """Return the functions of the metrics among some names."""
    metrics = {**ALL_METRICS, **paper_metrics()}
    return [metrics[name].formula for name in sorted(names) if name in metrics]


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
    package_targets = [target for target in targets if target.startswith("multilab.methods.")]
    return package_targets[0].split(".")[2] if package_targets else targets[0].split(".")[0]


def load_method(name: str) -> Method:
    """Read ``conf/method/<name>.yaml``, or the file whose path is given (``./my_method.yaml``)."""
    name = named_file("method", name)
    return Method.from_mapping(name, read_settings("method", name))


def gate_case_name(method: str, settings: Mapping[str, Any]) -> str:
    """Return the name of a method with the settings of a gate case: ``elm[n_hidden=5]``."""
    return f"{method}[{' '.join(f'{key}={value}' for key, value in settings.items())}]"


def without_gate_case(name: str) -> str:
    """Return the method in a name of :func:`gate_case_name`; another name is returned as it is."""
    return name.partition("[")[0]
