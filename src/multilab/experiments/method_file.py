"""Content of ``conf/method/<name>.yaml``, for checks and for its JSON Schema.

The class is apart from :class:`~multilab.experiments.method.Method` because the source of that one is part of the keys
of tuned cells: annotations there would move them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, Required, TypedDict

from msgspec import Meta

from multilab.core.settings import convert
from multilab.experiments.errors import ExperimentError

__all__ = ["METHOD_KEYS", "MethodFile", "SearchSpace", "check_method_file"]


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
class MethodFile:
    """A method: the settings of its estimator and of the steps around it.

    Attributes
    ----------
    preprocessing : {"none", "minmax", "standard"}
        Scaling of X, fitted on the training set.
    base_scores : tuple of str
        Methods whose out-of-fold scores are this method's input instead of X.
    inner_cv : dict
        ``{folds, order}`` of the out-of-fold scores.
    save_attributes : tuple of str
        Fitted attributes that are stored with the cell.
    search : dict
        Search space (Optuna) by argument.
    check_params : dict
        Arguments that make the method fast in checks.
    seed_name : str
        Name from which the seeds are derived; default: the class path.
    title, reference, notes, family, licence : str
        Display only.
    requires : str
        Requirement to install for an estimator of another library: ``multilab[arena]``.
    """

    preprocessing: Literal["none", "minmax", "standard"] = "none"
    base_scores: tuple[str, ...] = ()
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


METHOD_KEYS = tuple(one.name for one in fields(MethodFile))
"""Keys of a method's YAML that are no arguments of its estimator."""


def check_method_file(name: str, mapping: Mapping[str, Any]) -> None:
    """Refuse settings of a method with a value of a wrong type, or an unknown key inside one of them.

    Keys that are none of :data:`METHOD_KEYS` are arguments of the estimator, whose signature decides about them.

    Raises
    ------
    ExperimentError
        Naming the file and the place in it.
    """
    own = {key: value for key, value in mapping.items() if key in METHOD_KEYS and value is not None}
    convert(own, MethodFile, f"conf/method/{name}.yaml", error=ExperimentError)
