"""Methods, protocols and studies as they stand in ``conf/``.

Reads YAML with OmegaConf alone: the ``keys`` stage runs this on every ``dvc repro`` and must stay under half a second.
A test confirms that Hydra composes the same values.
"""

from __future__ import annotations

import difflib
import functools
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.ground import OutsideCodeError, code_digest, conf_dir, outside_code

__all__ = ["ColumnSet", "Method", "Study", "load_method", "load_protocol", "load_study", "names", "plain"]

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""The libraries whose versions are in every key."""

_CODE_WITHIN = ("multilab.methods", "multilab.datasets.folds", "multilab.metrics")


@dataclass(frozen=True)
class Method:
    """One method: what reaches the estimator, and what the laboratory does around it.

    Attributes
    ----------
    name : str
        Stem of ``conf/method/<name>.yaml``.
    target : str
        Dotted path of the estimator class.
    params : dict
        Arguments of the estimator; nested ``_target_`` entries are built first.
    preprocessing : {"none", "minmax", "standard"}
        Scaling of X, fitted on the training part.
    base_scores : tuple of str
        Methods whose out-of-fold scores are this method's input in the place of X.
    inner : dict
        ``{folds, order}`` of the out-of-fold scores.
    keep : tuple of str
        Fitted attributes that are stored with the cell.
    search, small : dict
        Search space (Optuna) and arguments that make the method quick for checks.
    title, reference, notes : str
        For people; they reach neither the estimator nor the cell key.
    """

    name: str
    target: str
    params: dict[str, Any] = field(default_factory=dict)
    preprocessing: str = "none"
    base_scores: tuple[str, ...] = ()
    inner: dict[str, Any] = field(default_factory=lambda: {"folds": 5, "order": 1})
    keep: tuple[str, ...] = ()
    search: dict[str, Any] = field(default_factory=dict)
    small: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    reference: str = ""
    notes: str = ""

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any]) -> Method:
        """Build a method from the content of its YAML."""
        values = dict(mapping)
        target = values.pop("_target_", None)
        if not isinstance(target, str):
            raise ExperimentError(f"conf/method/{name}.yaml: no _target_; name the estimator class there")
        lab: dict[str, Any] = {}
        for key in ("preprocessing", "inner", "search", "small", "title", "reference", "notes"):
            if values.get(key) is not None:
                lab[key] = values[key]
            values.pop(key, None)
        for key in ("base_scores", "keep"):
            lab[key] = tuple(values.pop(key, None) or ())
        scaling = lab.get("preprocessing", "none")
        if scaling not in ("none", "minmax", "standard"):
            raise ExperimentError(f"conf/method/{name}.yaml: preprocessing {scaling!r} is not none, minmax or standard")
        return cls(name=name, target=target, params=values, **{"title": name, **lab})

    def with_params(self, changes: Mapping[str, Any]) -> Method:
        """Return the method with some arguments changed; ``preprocessing`` may be among them."""
        changes = dict(changes)
        scaling = changes.pop("preprocessing", self.preprocessing)
        return replace(self, params={**self.params, **changes}, preprocessing=scaling)

    def identity(self) -> dict[str, Any]:
        """Return what decides the fitted estimator."""
        return {"_target_": self.target, **self.params}

    def code(self) -> str:
        """Return the digest of the code of ``multilab.methods`` that the estimator stands on."""
        ours = [target for target in _targets(self.identity()) if target.startswith("multilab.")]
        return "-".join(dict.fromkeys(_code(_module(target))[:16] for target in ours))

    def outside(self) -> dict[str, Any]:
        """Return what identifies the code outside the package that the settings name.

        Versions of installed distributions and a digest of files, see :func:`multilab.ground.outside_code`; nothing
        for scikit-learn, whose version is in every key.
        """
        targets = tuple(target for target in _targets(self.identity()) if not target.startswith("multilab."))
        if targets in _installed:
            return _installed[targets]
        try:
            found = outside_code(targets, known=LIBRARIES)
        except OutsideCodeError as error:
            raise ExperimentError(f"conf/method/{self.name}.yaml: {error}") from None
        if "files" not in found:  # unlike files, installed versions stay as they are while a process runs
            _installed[targets] = found
        return found


_installed: dict[tuple[str, ...], dict[str, Any]] = {(): {}}


@functools.lru_cache(maxsize=256)
def _code(module: str) -> str:
    return code_digest(module, within=_CODE_WITHIN)


def _module(target: str) -> str:
    """Return the module of a target of this package, or the target itself if its package loads it lazily."""
    module = target.rpartition(".")[0]
    return target if module == "multilab.methods" else module


_LOOKUPS = (
    "hydra.utils.get_class",
    "hydra.utils.get_method",
    "hydra.utils.get_static_method",
    "hydra.utils.get_object",
)


def _targets(value: Any) -> list[str]:
    """Return what ``_target_`` names anywhere in a setting, in order of appearance."""
    found: list[str] = []
    if isinstance(value, Mapping):
        target = value.get("_target_")
        if target in _LOOKUPS:
            target = value.get("path")
        if isinstance(target, str):
            found.append(target)
        for item in value.values():
            found += _targets(item)
    elif isinstance(value, list | tuple):
        for item in value:
            found += _targets(item)
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class ColumnSet:
    """Further columns of a study, called ``<method>-<set>``: methods set another way, or tuned, on some datasets.

    The study's own settings of a method hold in a set too; its ``settings`` are applied after them. Columns that are
    ``beside`` also stand in the tables of the study's own methods, without a rank.
    """

    name: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    about: str = ""
    settings: tuple[dict[str, Any], ...] = ()
    tune: dict[str, Any] | None = None
    repeats: dict[str, Any] | None = None
    beside: bool = False

    @property
    def columns(self) -> dict[str, str]:
        """The method behind each column."""
        return {f"{method}-{self.name}": method for method in self.methods}


@dataclass(frozen=True)
class Study:
    """A study: datasets x methods under one protocol, what is measured, and what is asked of the results.

    ``methods`` are the study's own, compared on all its datasets. ``columns`` are sets of further columns
    (:class:`ColumnSet`): run, scored and published like the others, and compared within their set.
    ``settings`` are blocks ``{methods, datasets, set}`` that change arguments of methods (on datasets) in this study;
    ``protocols`` holds the protocol of single datasets where it is not ``protocol``.
    ``guards`` are such blocks that only the gate computes, on the first dataset.
    ``repeats`` is ``{times, methods}``: so often the splits are gone through, by the named methods with another seed
    each time; one result of every other method stands for all its repetitions.
    ``rope`` is that of the Bayesian test, which ``null`` leaves out.
    ``paper`` names the printed cells it is held against, ``claims`` the sentences to check (see
    :func:`multilab.claims.check_claims`). ``analyses`` are computed beyond scores (see
    :func:`multilab.experiments.analyses.unit.units_of`).
    """

    name: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    protocol: dict[str, Any]
    title: str = ""
    about: str = ""
    metrics: tuple[str, ...] = ("hamming_loss", "ranking_loss", "average_precision", "macro_f1", "micro_f1")
    headline: str = "ranking_loss"
    conventions: str = "default"
    alpha: float = 0.05
    rope: float | None = 0.01
    control: str | None = None
    seed: int = 0
    protocols: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: tuple[dict[str, Any], ...] = ()
    guards: tuple[dict[str, Any], ...] = ()
    tune: dict[str, Any] | None = None
    repeats: dict[str, Any] | None = None
    measure: str = "shared"
    notes: str = ""
    paper: str | None = None
    claims: tuple[dict[str, Any], ...] = ()
    analyses: tuple[dict[str, Any], ...] = ()
    columns: dict[str, ColumnSet] = field(default_factory=dict)

    @property
    def all_methods(self) -> tuple[str, ...]:
        """The names of all columns: the study's own methods, then those of its column sets."""
        return (*self.methods, *(column for found in self.columns.values() for column in found.columns))

    def column_set(self, name: str) -> ColumnSet | None:
        """Return the set a column belongs to, ``None`` for one of the study's own methods."""
        return next((found for found in self.columns.values() if name in found.columns), None)

    def base(self, name: str) -> str:
        """Return the method behind a column: the stem of its YAML."""
        found = self.column_set(name)
        return found.columns[name] if found else name

    def protocol_of(self, dataset: str) -> dict[str, Any]:
        """Return how a dataset is divided."""
        return self.protocols.get(dataset, self.protocol)

    def datasets_of(self, name: str) -> tuple[str, ...]:
        """Return the datasets a column is run on."""
        return (self.column_set(name) or self).datasets

    def tune_of(self, name: str) -> dict[str, Any] | None:
        """Return how a column is tuned, ``None`` if it is not."""
        return (self.column_set(name) or self).tune

    def repeats_of(self, name: str) -> tuple[int, bool]:
        """Return how often a column goes through the splits, and whether with another seed each time."""
        asked = (self.column_set(name) or self).repeats or {"times": 1, "methods": ()}
        return asked["times"], self.base(name) in asked["methods"]

    def method(self, name: str, dataset: str | None = None) -> Method:
        """Return the method of a column as this study sets it, for one dataset if named."""
        found, base = self.column_set(name), self.base(name)
        method = load_method(base)
        for block in (*self.settings, *(found.settings if found else ())):
            for_method = base in block.get("methods", (base,))
            for_dataset = dataset in block.get("datasets", (dataset,))
            if for_method and for_dataset:
                method = method.with_params(block["set"])
        return replace(method, name=name, title=f"{method.title} ({found.name})") if found else method


def plain(node: Any) -> Any:
    """Return an OmegaConf node as plain Python values, interpolations resolved."""
    from omegaconf import OmegaConf

    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def names(group: str) -> list[str]:
    """Return the names of a group of settings (``method``, ``study``, ``protocol``, ``dataset``), sorted."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def load_method(name: str) -> Method:
    """Read ``conf/method/<name>.yaml``."""
    return Method.from_mapping(name, _read("method", name))


def load_protocol(name: str) -> dict[str, Any]:
    """Read ``conf/protocol/<name>.yaml``."""
    return _read("protocol", name)


def load_study(name: str) -> Study:
    """Read ``conf/study/<name>.yaml``: ``methods: all`` means every method there is."""
    return study_from(name, _read("study", name))


def study_from(name: str, mapping: Mapping[str, Any]) -> Study:
    """Build a study from the content of its YAML."""
    values = dict(mapping)
    protocol = values.pop("protocol", "kfold5")
    methods = values.pop("methods", "all")
    known = set(Study.__dataclass_fields__)
    _check_keys(f"conf/study/{name}.yaml", "study", values, known)
    for key in ("metrics", "settings", "guards", "claims", "analyses"):
        if key in values:
            values[key] = tuple(values[key])
    values["repeats"] = _checked_repeats(f"conf/study/{name}.yaml", values.get("repeats"))
    sets = values.pop("columns", None) or {}
    study = Study(
        name=name,
        datasets=tuple(values.pop("datasets", ())),
        methods=tuple(names("method") if methods == "all" else methods),
        protocol=load_protocol(protocol) if isinstance(protocol, str) else dict(protocol),
        **values,
    )
    return replace(study, columns={key: _column_set(study, key, block) for key, block in sets.items()})


def _column_set(study: Study, name: str, block: Mapping[str, Any]) -> ColumnSet:
    """Build a column set from its block in the YAML of a study; what it leaves out is the study's."""
    where = f"conf/study/{study.name}.yaml: columns.{name}"
    if not re.fullmatch("[a-z0-9_]+", name):
        raise ExperimentError(f"{where}: a column set is named by small letters, digits and _ (stages are called so)")
    _check_keys(where, "column set", block, set(ColumnSet.__dataclass_fields__) - {"name"})
    methods = tuple(block.get("methods", study.methods))
    datasets = tuple(block.get("datasets", study.datasets))
    asked = {"method": (methods, names("method")), "dataset here": (datasets, study.datasets)}
    for what, (named, known) in asked.items():
        for word in set(named) - set(known):
            raise ExperimentError(f"{where}: no {what} is called {word!r}{_meant(word, known)}")
    settings = tuple(block.get("settings", ()))
    repeats = _checked_repeats(where, block.get("repeats", study.repeats))
    more = {"tune": block.get("tune", study.tune), "repeats": repeats, "beside": bool(block.get("beside", False))}
    return ColumnSet(name, methods, datasets, block.get("about", ""), settings, **more)


def _checked_repeats(where: str, block: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what is said of repetitions, refused if it is not ``{times, methods}``."""
    if block is None:
        return None
    times, methods = block.get("times"), block.get("methods")
    whole = isinstance(times, int) and not isinstance(times, bool) and times >= 1
    if set(block) != {"times", "methods"} or not whole or not isinstance(methods, list):
        raise ExperimentError(f"{where}: repeats is {{times: 10, methods: [elm]}}, not {dict(block)}")
    for word in set(methods) - set(names("method")):
        raise ExperimentError(f"{where}: repeats: no method is called {word!r}{_meant(word, names('method'))}")
    return dict(block)


def _check_keys(where: str, what: str, values: Mapping[str, Any], known: set[str]) -> None:
    for key in values:
        if key not in known:
            raise ExperimentError(f"{where}: {key!r} is not a setting of a {what}" + _meant(key, known))


def _read(group: str, name: str) -> dict[str, Any]:
    path = conf_dir() / group / f"{name}.yaml"
    if not path.is_file():
        raise ExperimentError(f"no {group} is called {name!r}{_meant(name, names(group))}; they are in {path.parent}")
    return _parse(path, path.read_bytes())


@functools.lru_cache(maxsize=1024)
def _parse(path: Path, content: bytes) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        values = plain(OmegaConf.load(io.StringIO(content.decode())))
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ExperimentError(f"{path}: expected settings (key: value), found {type(values).__name__}")
    return values


def _meant(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
