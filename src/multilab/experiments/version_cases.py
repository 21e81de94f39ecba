"""Cases of the gate of declared versions: small computations with every method, metric, splitter and generator.

Each method is fitted on dense, sparse and partly observed data, with weights, on tables without and with groups, in a
short search, and with each choice that the signature of a class lists.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from multilab.cells.cell import Cell, split_refs, with_reads
from multilab.cells.conf import entrant_names, package_names
from multilab.cells.errors import ExperimentError
from multilab.cells.fitting import fit_on_rows
from multilab.cells.method import Method, build, class_names, load_method
from multilab.cells.running import estimator_of_cell, gather, run_cell
from multilab.cells.settings import ObservedShare, Tuning
from multilab.cells.store import Store
from multilab.core import conf_dir, declared_versions, json_digest
from multilab.datasets import TableEncoder, add_dataset, load, sample_scenario
from multilab.datasets.synthetic import bayes_accuracy, generate
from multilab.datasets.table_encoder import with_grams
from multilab.experiments.gate import trial_values
from multilab.experiments.study import load_study
from multilab.methods import MethodError, all_estimators
from multilab.metrics import ALL_METRICS, score_all
from multilab.metrics.conventions import PRESETS
from multilab.metrics.registry import defined, paper_metrics
from multilab.model_selection import (
    IterativeStratifiedGroupKFold,
    IterativeStratifiedShuffleSplit,
    RepeatedIterativeStratifiedKFold,
    make_splits,
)

__all__ = ["Case", "all_cases", "only_in", "subject_of"]

Numbers = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A computation whose numbers have a reference.

    Attributes
    ----------
    name : str
        Its subject and what is done with it: ``mlknn: sparse``, ``metric macro_f1: values``.
    compute : callable
        Returns the numbers; there are none where a method refuses its arguments or the labels.
    things : tuple
        The classes and functions that compute them; the first is what the case is about.
    settings : str
        Digest of the settings, the data and the rows, where keys of cells hold them.
    """

    name: str
    compute: Callable[[], Numbers]
    things: tuple[Any, ...]
    settings: str = ""

    @property
    def owner(self) -> Any:
        """The class, metric or module whose version is raised when the numbers change."""
        about = self.things[0]
        return about if isinstance(about, type) or hasattr(about, "results_version") else sys.modules[about.__module__]

    @property
    def made_of(self) -> dict[str, Any]:
        """What decides the numbers; with other versions or settings a reference is out of date."""
        described = {"settings": self.settings, "versions": declared_versions(self.things)}
        return {key: value for key, value in described.items() if value}


@contextlib.contextmanager
def only_in(folder: str) -> Iterator[Path]:
    """Work in a folder: data and cells are written there, and nothing of the user's settings and data is read."""
    before = dict(os.environ)
    os.environ |= {"MULTILAB_CONF": str(conf_dir()), "MULTILAB_CACHE": f"{folder}/data", "MULTILAB_CARDS": ""}
    try:
        with contextlib.chdir(folder):
            yield Path(folder)
    finally:
        os.environ.clear()
        os.environ.update(before)


def subject_of(name: str) -> str:
    """Return the subject of a case from its name: a method, ``metric macro_f1``, ``splits``."""
    return name.partition(":")[0]


def all_cases(folder: Path, only: Collection[str] = ()) -> tuple[list[Case], list[str]]:
    """Return the cases, or those of some subjects, and the methods that are skipped as their packages are missing.

    Parameters
    ----------
    folder : Path
        The current folder, which is empty: datasets and cells are written there.
    only : collection of str
    """
    (folder / "visits.csv").write_text(_visits())
    kinds: dict[str, Any] = {"labels_last": 2, "columns": {"remark": "text"}}
    add_dataset("visits.csv", groups="patient", **kinds)
    add_dataset("visits.csv", name="table", drop=["patient"], **kinds)
    methods, skipped = _methods()
    every = [*_of_methods(methods, Store(folder / "cells"), only), *_of_metrics(), *_of_data()]
    return [case for case in every if not only or subject_of(case.name) in only], skipped


def _visits() -> str:
    """Return a table of texts, dates, prices, categories and gaps as CSV, computed without random numbers."""
    usual, of_sport, of_food = "the more today very we saw it", "goal match team score", "salt oven bread recipe"
    rows = ["patient,remark,price,day,country,x,sport,food"]
    for i in range(120):
        sport, food = int(i * i % 7 < 3), int(i * i % 11 < 5)
        words = [usual.split()[i * k % 7] for k in (1, 3, 5)]
        words += sport * [of_sport.split()[i % 4], of_sport.split()[i // 4 % 4]] + food * [of_food.split()[i // 3 % 4]]
        price, day = f'"{i % 90 + 1},{i % 10}0 €"' if i % 13 else "", f"{i % 28 + 1}.{i % 12 + 1}.2024"
        country = ("DE", "FR", "AT", "")[i * i % 4]
        rows.append(f"p{i % 40},{' '.join(words)},{price},{day},{country},{i * 7 % 31 / 10 + sport},{sport},{food}")
    return "\n".join(rows) + "\n"


# ---------------------------------------------------------------- methods


def _methods() -> tuple[list[Method], list[str]]:
    """Return all methods with arguments that make them fast, also of classes without a method file; and the skipped."""
    quick = load_study("quick")  # its settings keep kernels apart from the identity, where nothing could move
    methods, skipped, named = [], [], set[str]()
    for name in (*package_names("method"), *entrant_names("method")):
        method = load_method(name)
        named.update(class_names(method.identity()))
        try:
            method.check_installed()
        except ExperimentError:
            skipped.append(name)
            continue
        fast: dict[str, Any] = dict(method.check_params)
        if method.base_scores:  # their check_params put estimators in the place of the base scores
            fast = {argument: value for argument, value in fast.items() if not class_names({"": value})}
            members = {member: load_method(member).check_params for member in method.base_scores}
            method = replace(method, member_params=members)
        for block in quick.settings:
            if block.applies_to(name, None):
                fast.update(block.set)
        fast.update(_STABLE.get(name, {}))
        methods.append(method.with_params(fast))
    classes = [cls for cls in all_estimators() if f"{cls.__module__}.{cls.__qualname__}" not in named]
    return [*methods, *map(_method_of, classes)], skipped


_STABLE: dict[str, dict[str, Any]] = {
    "br_linear_svm": {"preprocessing": "minmax"},  # on a table that is not scaled rounding moves the margins by 5e-7
    "klscca": {"reduce__eta": 0.1},  # without a penalty choices about it have no effect and LSQR does not converge
}
"""Arguments with which a method gives the same numbers on every processor."""


def _method_of(cls: Any) -> Method:
    """Return a classifier with a class that no method file names."""
    itself: dict[str, Any] = {"_target_": f"{cls.__module__}.{cls.__qualname__}"}
    settings = itself
    if hasattr(cls, "fit_resample"):
        target = "multilab.methods.sampling.resampled_classifier.ResampledClassifier"
        settings = {"_target_": target, "estimator": _SMOOTH, "sampler": itself}
    elif hasattr(cls, "transform"):
        settings = {"_target_": "sklearn.pipeline.Pipeline", "steps": [["reduce", itself], ["classify", _SMOOTH]]}
    elif not get_tags(cls()).target_tags.two_d_labels:
        target = "multilab.methods.transformation.binary_relevance.BinaryRelevance"
        settings = {"_target_": target, "estimator": itself}
    # scaled: unscaled, the logistic regressions of some classes stop before they converge, so that rounding shows
    return Method.from_mapping(cls.__name__, {**settings, "preprocessing": "minmax"})


def _with_smooth_scores(method: Method) -> Method:
    """Return a pipeline with another classifier: its scores show each change of the features, those of k-NN do not."""
    arguments = {argument: value for argument, value in method.params.items() if not argument.startswith("classify__")}
    return replace(method, params={**arguments, "steps": [*arguments["steps"][:-1], ["classify", _SMOOTH]]})


_SMOOTH = {"_target_": "multilab.methods.elm.kernel_elm.KernelELM", "gamma": "median"}


def _of_methods(methods: list[Method], store: Store, only: Collection[str]) -> Iterator[Case]:
    """Yield the cases of methods. A combination of choices is tried with the last method that has the class."""
    dense, sparse = (split_refs(name, {"first": 120})[0] for name in ("genes-toy", "topics-toy"))
    table, visits = (split_refs(name, {"kfold": 3, "stratify": 1})[0] for name in ("table", "visits"))
    tried = set[tuple[type, str]]()
    for method in reversed(methods):  # rlskmddm, with a penalty, before lskmddm
        smooth = _with_smooth_scores(method) if "steps" in method.params else method
        choices = list(_choices(smooth, tried))
        if only and method.name not in only:
            continue
        cell = Cell("train", dense, method)
        yield _case("dense", cell, store)
        yield _case("sparse", replace(cell, split_ref=sparse), store)
        yield _case("missing labels", replace(cell, observed=ObservedShare(0.6)), store, may_refuse=True)
        yield _case("table", replace(cell, split_ref=table), store)
        yield _case("groups", replace(cell, split_ref=visits), store)
        if method.search:
            yield _case("search", replace(cell, tune=Tuning(n_trials=2, folds=2)), store)
        if smooth != method:
            yield _case("features", replace(cell, method=smooth), store)
        if has_fit_parameter(build(method), "sample_weight"):
            yield _case("weights", cell, store, may_refuse=True, compute=_with_weights)
        for part, argument, changed in choices:
            yield _case(argument, Cell("train", dense, changed), store, may_refuse=True, about=part)


def _choices(method: Method, tried: set[tuple[type, str]]) -> Iterator[tuple[type, str, Method]]:
    """Yield a class of a method, another choice of one of its arguments, and the method with that choice."""
    estimator = build(method)
    parts = {"": estimator} | {f"{name}__": value for name, value in estimator.get_params().items()}
    for prefix, part in parts.items():
        if type(part).__module__.startswith("multilab."):
            hints = get_type_hints(type(part).__init__)
            listed = {name: choices for name, hint in hints.items() if (choices := _listed(hint))}
            current = {name: getattr(part, name) for name in listed}
            tried.add((type(part), repr(current)))
            for argument, choices in listed.items():
                for choice in choices:
                    combination = type(part), repr(current | {argument: choice})
                    if combination not in tried:
                        tried.add(combination)
                        changed = method.with_params({prefix + argument: choice})
                        yield type(part), f"{prefix}{argument}={choice}", changed


def _listed(hint: Any) -> tuple[Any, ...]:
    """Return the values that a type hint lists, without those that need packages that not everybody has."""
    if hint is bool:
        return (False, True)
    if get_origin(hint) is Literal:
        return tuple(value for value in get_args(hint) if value not in ("hnsw", "ivf"))
    return tuple(value for part in get_args(hint) for value in _listed(part))


def _case(
    what: str, cell: Cell, store: Store, may_refuse: bool = False, compute: Any = None, about: Any = None
) -> Case:
    """Return a case of a cell; it is about a class, by default the one in the name or the first in the settings."""
    cells = [cell, *with_reads(cell.reads)]
    classes = [thing for thing in cell.code() if isinstance(thing, type) and thing.__module__.startswith("multilab.")]
    about = about or next((cls for cls in classes if cls.__name__ == cell.method.name), classes[0])
    things = dict.fromkeys([about, *(thing for member in cells for thing in member.code())])
    code = {"versions", "results_versions", "reads"}
    made = [
        [{k: v for k, v in member.identity.items() if k not in code}, member.method.outside.distributions]
        for member in cells
    ]
    work = functools.partial(compute or _of_cell, cell, store, may_refuse)
    return Case(f"{cell.method.name}: {what}", work, tuple(things), json_digest(made)[:8])


_PREDICTED = ("scores", "decisions")


def _of_cell(cell: Cell, store: Store, may_refuse: bool) -> Numbers:
    reason = run_cell(cell, store)
    if reason and may_refuse:
        return {}
    if reason:
        raise ExperimentError(reason)
    arrays = store.arrays(cell.key)  # some methods have scores and decisions for single metrics
    every = {kind: [arrays[name].ravel() for name in sorted(arrays) if name.startswith(kind)] for kind in _PREDICTED}
    return _sums(**{kind: np.concatenate(parts) for kind, parts in every.items()}) | trial_values(cell, store)


def _with_weights(cell: Cell, store: Store, may_refuse: bool) -> Numbers:
    rows = gather(cell, store)
    weights = np.linspace(0.5, 2.0, len(rows.Y_train))
    try:
        fit = fit_on_rows(estimator_of_cell(cell), rows.X_train, rows.Y_train, rows.X_test, sample_weight=weights)
    except MethodError:  # a base estimator takes none
        return {}
    return _sums(scores=fit.scores, decisions=fit.decisions)


def _sums(**arrays: Any) -> Numbers:
    return {name: _weighted_sum(array) for name, array in arrays.items()}


def _weighted_sum(array: Any) -> float:
    """Return a sum in which no change of an entry, of its sign or place hides; it is of the size of one entry."""
    values = np.asarray(array.toarray() if hasattr(array, "toarray") else array, dtype=float).ravel()
    finite = np.isfinite(values)
    return float(np.cos(np.arange(len(values)))[finite] @ values[finite] / math.sqrt(len(values)))


# ---------------------------------------------------------------- metrics, splitters, generators, encoders


def _of_metrics() -> Iterator[Case]:
    for name in (*ALL_METRICS, *paper_metrics()):
        things = defined(name).formula, score_all
        yield Case(f"metric {name}: values", functools.partial(_metric_values, name), things)


def _metric_values(name: str) -> Numbers:
    """Return a metric under all conventions, of ties, rows and labels without a positive, and missing labels."""
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 6)) < 0.4).astype(np.int8)
    Y[0], Y[1], Y[:, 5] = 0, 1, 0
    scores = np.clip(rng.random(Y.shape) + 0.3 * Y - 0.2, 0, 1).round(1)
    decisions = (scores >= 0.5) & (np.arange(30) != 2)[:, None]
    missing = np.where(rng.random(Y.shape) < 0.2, -1, Y).astype(np.int8)
    return {
        f"{preset}{what}": score_all(truth, scores, decisions, conventions=preset, metrics=[name])[name]
        for preset in PRESETS
        for what, truth in (("", Y), (", missing labels", missing))
    }


def _of_data() -> Iterator[Case]:
    """Yield the cases of splits, generated data, and the encodings of a table."""
    for order in (0, 1, 2):
        for kind in ({"kfold": 3}, {"holdout": {"train_size": 0.7}}):
            protocol = {**kind, "stratify": order, "seed": 1, "repeats": 2}
            work = functools.partial(_protocol_rows, protocol)
            yield Case(f"splits: {next(iter(kind))}, order {order}", work, (make_splits,))
    for splitter in (
        RepeatedIterativeStratifiedKFold(n_splits=3, n_repeats=2),
        IterativeStratifiedShuffleSplit(n_splits=2, test_size=0.3),
        IterativeStratifiedGroupKFold(n_splits=3),
    ):
        work = functools.partial(_splitter_rows, splitter)
        yield Case(f"splits: {type(splitter).__name__}", work, (type(splitter),))
    things = generate, sample_scenario, bayes_accuracy
    for name in ("digit-segments", "genes", "topics"):
        yield Case(f"generator {name}: data", functools.partial(_generated, name), things)
    for k in (1, 2, 3, 4):
        yield Case(f"generator scenario {k}: data", functools.partial(_generated, "scenario", k), things)
    yield Case("table: encodings", _encodings, (load, TableEncoder, with_grams))


def _protocol_rows(protocol: dict[str, Any]) -> Numbers:
    """Return sums of the rows of all splits of toy genes, also with groups or missing labels."""
    Y = load("genes-toy").Y
    groups, missing = np.arange(len(Y)) ** 2 % 83, np.where(np.arange(Y.size).reshape(Y.shape) % 4, Y, -1)
    kinds = {"rows": (Y, None), "groups": (Y, groups), "missing labels": (missing.astype(np.int8), None)}
    made = {name: make_splits(labels, protocol, groups=of) for name, (labels, of) in kinds.items()}
    return _sums(
        **{name: np.concatenate([rows for split in splits for rows in split]) for name, splits in made.items()}
    )


def _splitter_rows(splitter: Any) -> Numbers:
    Y = load("genes-toy").Y
    folds = splitter.split(np.zeros((len(Y), 1)), Y, np.arange(len(Y)) ** 2 % 83)
    return _sums(rows=np.concatenate([rows for fold in folds for rows in fold]))


def _generated(name: str, k: int | None = None) -> Numbers:
    raw = generate({"name": name, **({} if k is None else {"k": k})})
    numbers = _sums(X=raw.X, Y=raw.Y)
    if k is not None:
        shifted = sample_scenario(k, n=50, seed=1, threshold=0.25)
        numbers |= _sums(y_real=shifted.y_real, shifted=shifted.Y)
        numbers |= {f"accuracy, {cut}": bayes_accuracy(k, cut) for cut in ("median", "mean")}
    return numbers


def _encodings() -> Numbers:
    data = load("table")
    words, chars = data.kinds or {}, with_grams(data.kinds or {})
    encoded = {
        name: TableEncoder.learn(data.X[:80], kinds, data.label_names).encode(data.X).X
        for name, kinds in (("words", words), ("chars", chars))
    }
    return _sums(Y=data.Y, **encoded)
