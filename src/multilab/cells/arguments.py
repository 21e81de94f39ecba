"""Checks of the arguments of methods and studies against the estimators' signatures, before anything is computed.

Imports the estimators, so it is called by the programs that start work, not where settings are read.
"""

import importlib
import inspect
import pydoc
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from multilab.cells.errors import ExperimentError
from multilab.cells.method import METHOD_KEYS, PREPROCESSING, Method, build
from multilab.core.messages import closest, unknown_name
from multilab.metrics import METRICS, MetricError
from multilab.metrics.conventions import resolve
from multilab.metrics.registry import unknown_standard

__all__ = ["check_method", "check_metrics"]

_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}


def check_method(method: Method, tuned: bool = False) -> None:
    """Refuse arguments that the estimator of a method does not have, and values of a wrong type.

    The signature decides which names exist; the type annotations of the constructor and scikit-learn's parameter
    validation decide which values are allowed. Nested estimators are checked alike. With ``tuned``, the names of the
    search space are checked too.

    Raises
    ------
    ExperimentError
        Naming the method, the argument and, for an unknown one, the arguments there are.
    """
    method.check_installed()
    if method.preprocessing not in PREPROCESSING:
        raise ExperimentError(f"{method.name}: " + unknown_name("preprocessing", method.preprocessing, PREPROCESSING))
    arguments = {name: value for name, value in method.params.items() if "__" not in name}
    _check_mapping(method.name, method.target, arguments)

    nested = sorted(set(method.params) - set(arguments))
    try:
        estimator = build(Method(method.name, method.target, arguments))
    except AttributeError as error:
        where = f"conf/method/{method.name}.yaml: _target_ {method.target}"
        raise ExperimentError(f"{where}: not a scikit-learn estimator: {error}") from None
    _check_names(method.name, estimator, [*nested, *(method.search if tuned else ())])
    if nested:
        estimator.set_params(**{name: method.params[name] for name in nested})
    _check_values(method.name, estimator)


def check_metrics(metrics: Iterable[str], conventions: str = "default") -> None:
    """Refuse a metric or a preset of conventions that does not exist."""
    for name in metrics:
        if str(name).removeprefix("n_skipped_") not in METRICS:
            raise ExperimentError(unknown_standard(name))
    try:
        resolve(conventions)
    except MetricError as error:
        raise ExperimentError(f"conventions: {error}") from None


def _check_mapping(name: str, target: str, params: Mapping[str, Any]) -> None:
    """Check the arguments of one ``_target_``, and of those nested in it."""
    constructor = _locate(name, target)
    try:
        signature = inspect.signature(constructor)
    except (TypeError, ValueError):  # some builtins have none
        return
    names = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    any_name = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    hints = _hints(constructor)
    short = target.rpartition(".")[2] if "." in name else name
    for argument, value in params.items():
        if argument.startswith("_") and argument.endswith("_"):  # Hydra's own: _target_, _partial_, _convert_
            continue
        if argument not in names and not any_name:
            raise ExperimentError(_no_argument(short, argument, names))
        default = signature.parameters[argument].default if argument in names else None
        is_default = type(value) is type(default) and value == default  # fine, whatever the annotation says
        if not is_default and not _fits(value, hints.get(argument, Any)):
            raise ExperimentError(f"{short}: {argument} must be {_described(hints[argument])}, not {value!r}")
        for inner in _targets(value):
            rest = {key: item for key, item in inner.items() if key != "_target_"}
            _check_mapping(f"{name}.{argument}", inner["_target_"], rest)


def _no_argument(owner: str, argument: str, known: list[str]) -> str:
    match = closest(argument, [*known, *METHOD_KEYS])
    hint = f"; did you mean {match}?" if match else ""
    return f"{owner} has no argument {argument}; it has {', '.join(known) or 'none'}{hint}"


def _locate(name: str, target: str) -> Any:
    """Return the class or function a ``_target_`` names."""
    where = f"conf/method/{name.partition('.')[0]}.yaml: _target_ {target}"
    module, _, attribute = target.rpartition(".")
    if not module:
        raise ExperimentError(f"{where}: expected the dotted path of a class, module.Class")
    try:
        content = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not module.startswith(error.name or ""):
            raise ExperimentError(f"{where}: its module needs {error.name}, which is not installed") from None
        resolved = pydoc.locate(target)  # perhaps a method of a class: module.Class.make
        if resolved is None:
            raise ExperimentError(f"{where}: there is no module {error.name}") from None
        return resolved
    except Exception as error:
        raise ExperimentError(f"{where}: its module cannot be imported: {type(error).__name__}: {error}") from None
    if not hasattr(content, attribute):
        classes = sorted(n for n, value in vars(content).items() if inspect.isclass(value) and not n.startswith("_"))
        raise ExperimentError(f"{where}: {unknown_name('class', attribute, classes)}")
    return getattr(content, attribute)


def _hints(constructor: Any) -> dict[str, Any]:
    """Return the annotations of a constructor's arguments, none if they cannot be resolved."""
    function = constructor.__init__ if inspect.isclass(constructor) else constructor
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}


def _targets(value: Any) -> list[Mapping[str, Any]]:
    """Return the settings of estimators within a value, the outermost only."""
    if isinstance(value, Mapping):
        if isinstance(value.get("_target_"), str):
            return [value]
        return [inner for item in value.values() for inner in _targets(item)]
    if isinstance(value, list | tuple):
        return [inner for item in value for inner in _targets(item)]
    return []


def _fits(value: Any, hint: Any) -> bool:
    """Tell whether a value from YAML can be of an annotated type; what the annotation leaves open is accepted."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in inner)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in inner)
    if hint in (int, float, bool, str):
        if isinstance(value, bool):
            return hint is bool
        return isinstance(value, int | float if hint is float else hint)
    if hint is type(None):
        return value is None
    if isinstance(value, Mapping):  # an estimator to be built, or settings that the estimator itself must judge
        return True
    if isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, Mapping):
        one_type = len(inner) == 1 or (len(inner) == 2 and inner[1] is ...)
        items = inner[0] if one_type else Any
        return isinstance(value, list | tuple) and all(_fits(item, items) for item in value)
    return not (inspect.isclass(hint) and hasattr(hint, "get_params"))


def _described(hint: Any) -> str:
    """Return an annotated type as text."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_described(option) for option in inner)
    if origin is Literal:
        return " or ".join(repr(option) for option in inner)
    if hint in _KINDS:
        return _KINDS[hint]
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return "a list" + (f" ({_described(inner[0])} each)" if inner and inner[0] is not Any else "")
    return f"a setting with the _target_ of an estimator ({getattr(hint, '__name__', hint)})"


def _check_names(name: str, estimator: Any, nested: Iterable[str]) -> None:
    """Refuse arguments in scikit-learn's nested form (``estimator__C``) that do not exist."""
    params = estimator.get_params(deep=True)
    for argument in nested:
        if argument in params:
            continue
        owner, _, last = argument.rpartition("__")
        inner = params.get(owner) if owner else estimator
        if hasattr(inner, "get_params"):
            title = type(inner).__name__ if owner else name
            raise ExperimentError(f"{name}: {_no_argument(title, last, list(inner.get_params(deep=False)))}")
        if owner and hasattr(estimator, "get_params"):
            parts = sorted({key.partition("__")[0] for key in params if "__" in key})
            raise ExperimentError(f"{name}: {unknown_name('nested estimator', owner, parts)}")


def _check_values(name: str, estimator: Any) -> None:
    """Let scikit-learn's parameter validation judge an estimator and those in it."""
    for part in (estimator, *estimator.get_params(deep=True).values()):
        if hasattr(part, "_parameter_constraints") and hasattr(part, "_validate_params"):
            try:
                part._validate_params()
            except ValueError as error:
                raise ExperimentError(f"{name}: {' '.join(str(error).split())}") from None
