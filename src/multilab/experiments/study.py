"""Studies as ``conf/study/*.yaml`` describes them, and the blocks of their settings: variants, tuning, limits."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from multilab.cells.arguments import check_method, check_metrics
from multilab.cells.conf import (
    check_names,
    load_protocol,
    names,
    package_names,
    read_settings,
)
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, load_method
from multilab.cells.settings import CellLimits, ObservedShare, Tuning, search_module
from multilab.core.settings import NOT_IN_FILE, OMITTED_AT_DEFAULT, convert
from multilab.metrics.registry import paper_metrics
from multilab.statistics.result_files import variant_column

__all__ = [
    "KINDS",
    "Override",
    "Repetitions",
    "Study",
    "Variant",
    "check_study",
    "load_study",
    "study_from",
]

AtLeastOne = Annotated[int, Meta(ge=1)]
VariantName = Annotated[str, Meta(pattern="^[a-z0-9_]+$", description="lower-case letters, digits and _")]
Kind = Literal["as_printed", "fair", "counterfactual", "ablation"]
KINDS: tuple[str, ...] = get_args(Kind)
"""What a column is for: ``as_printed``, the best reconstruction of what the authors ran, which may be set with sight
of their results and is compared with the published cells only; ``fair``, set without sight of test results, which
methods are compared by; ``counterfactual``, the explanation of a difference; ``ablation``, anything else."""


@dataclass(frozen=True)
class Repetitions:
    """Repeated runs over the splits: the ``repetitions`` block ``{n_repeats, methods}``.

    The named methods have another seed in each repetition; one result of every other method counts for all.
    """

    n_repeats: AtLeastOne
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Override:
    """Other arguments for some methods on some datasets: a block ``{methods, datasets, set, search}`` of a study.

    ``None`` means all methods or all datasets. ``search`` replaces search spaces of single arguments, for columns
    that are tuned.
    """

    set: dict[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None
    search: dict[str, Any] | None = None

    def applies_to(self, method: str, dataset: str | None) -> bool:
        """Tell whether the override changes a method on a dataset (``None``: on no particular dataset)."""
        return (self.methods is None or method in self.methods) and (self.datasets is None or dataset in self.datasets)

    def to_dict(self) -> dict[str, Any]:
        """Return the block as it is written in the YAML."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Variant:
    """Methods with other settings, or tuned, on some datasets of a study: columns ``<method>-<variant>``.

    The study's settings of a method hold in a variant too; those of the variant are applied after them. Columns with
    ``show_with_main`` are also in the tables of the study's own methods, without a rank. ``kind`` is one of
    :data:`KINDS`. With ``splits`` only the first splits of each dataset are run, or of those that it names. With
    ``observed`` a share of the training labels is hidden. Pages show the ``title``, else the name.
    """

    name: Annotated[str, Meta(pattern="^[a-z0-9_]+$", description="lower-case letters, digits and _")] = field(
        metadata=NOT_IN_FILE
    )
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    description: str = ""
    settings: tuple[Override, ...] = ()
    tune: Tuning | None = None
    repetitions: Repetitions | None = None
    show_with_main: bool = False
    kind: Kind = "ablation"
    splits: AtLeastOne | dict[str, AtLeastOne] | None = None
    observed: ObservedShare | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    title: str = field(default="", metadata=OMITTED_AT_DEFAULT)

    @property
    def columns(self) -> dict[str, str]:
        """The method of each column."""
        return {variant_column(method, self.name): method for method in self.methods}


@dataclass(frozen=True)
class Study:
    """A study: methods compared on datasets under one protocol.

    Attributes
    ----------
    name : str
        Stem of ``conf/study/<name>.yaml``.
    datasets, methods : tuple of str
        Datasets, and the study's own methods, which are compared on all of them.
    protocol : dict
        How a dataset is split; ``protocols`` holds the exceptions by dataset.
    metrics : tuple of str
        Metrics; reports begin with ``headline``.
    conventions : str
        Preset of the metrics.
    alpha, rope, control : float, float or None, str or None
        Significance level, region of practical equivalence (``None``: no Bayesian test), and control method.
    settings : tuple of Override
        Other arguments of methods in this study.
    variants : dict of str to Variant
        Further columns, which are run, scored and published like the others but compared within their variant.
    gate_cases : tuple of Override
        Settings that only the gate computes, on the first dataset.
    tune, repetitions : Tuning or None, Repetitions or None
        How the columns are tuned, and which methods are repeated with other seeds.
    measure : {"shared", "alone"}
        ``alone``: one cell at a time, each in a separate process.
    paper : str, optional
        The paper that the results are compared with (see :mod:`multilab.papers`).
    kind : str
        Purpose of the study's own columns: one of :data:`KINDS`.
    label_counts : bool
        Whether to write the counts of decisions per label (``labels.csv``) for the report by label frequency.
    observed : ObservedShare or None
        Share of the training labels that is observed; ``None`` for all.
    limits : CellLimits or None
        Limits of a cell. Cells that exceed a limit, and those that fail, become rows of ``unfinished.csv``.
    settings_for_members : bool
        Whether ``settings`` also apply to the base methods of a stack.
    page : {"study", "arena"}
        Kind of report: a page of the study, or a part of the arena's page.
    splits : int or None
        Number of splits to run of each dataset; ``None``: all of the protocol.
    title, description, notes : str
        Display only.
    """

    name: str = field(metadata=NOT_IN_FILE)
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    protocol: dict[str, Any]
    title: str = ""
    description: str = ""
    metrics: tuple[str, ...] = ("hamming_loss", "ranking_loss", "average_precision", "macro_f1", "micro_f1")
    headline: str = "ranking_loss"
    conventions: str = "default"
    alpha: float = 0.05
    rope: float | None = 0.01
    control: str | None = None
    seed: int = 0
    protocols: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: tuple[Override, ...] = ()
    gate_cases: tuple[Override, ...] = ()
    tune: Tuning | None = None
    repetitions: Repetitions | None = None
    measure: Literal["shared", "alone"] = "shared"
    notes: str = ""
    paper: str | None = None
    variants: dict[str, Variant] = field(default_factory=dict)
    kind: Kind = "fair"
    label_counts: bool = False
    observed: ObservedShare | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    limits: CellLimits | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    settings_for_members: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    page: Literal["study", "arena"] = field(default="study", metadata=OMITTED_AT_DEFAULT)
    splits: AtLeastOne | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    @property
    def all_methods(self) -> tuple[str, ...]:
        """The names of all columns: the study's own methods, then those of its variants."""
        return (*self.methods, *(column for variant in self.variants.values() for column in variant.columns))

    def variant_of(self, column: str) -> Variant | None:
        """Return the variant of a column, ``None`` for one of the study's own methods."""
        return self._variants_by_column.get(column)

    @functools.cached_property
    def _variants_by_column(self) -> dict[str, Variant]:
        """The variants by the names of their columns: looked up several times for each of thousands of cells."""
        return {column: variant for variant in reversed(self.variants.values()) for column in variant.columns}

    def kind_of(self, column: str) -> str:
        """Return what a column is for, one of :data:`KINDS`."""
        return (self.variant_of(column) or self).kind

    def base(self, column: str) -> str:
        """Return the method of a column: the stem of its YAML."""
        variant = self.variant_of(column)
        return variant.columns[column] if variant else column

    def protocol_of(self, dataset: str) -> dict[str, Any]:
        """Return how a dataset is split."""
        return self.protocols.get(dataset, self.protocol)

    def datasets_of(self, column: str) -> tuple[str, ...]:
        """Return the datasets of a column."""
        return (self.variant_of(column) or self).datasets

    def splits_of(self, column: str, dataset: str) -> int | None:
        """Return the number of splits of a column on a dataset, ``None`` for all of the protocol."""
        splits = (self.variant_of(column) or self).splits
        return splits.get(dataset) if isinstance(splits, dict) else splits

    def tune_of(self, column: str) -> Tuning | None:
        """Return how a column is tuned, ``None`` if it is not."""
        return (self.variant_of(column) or self).tune

    def observed_of(self, column: str) -> ObservedShare | None:
        """Return the share of the training labels that a column sees, ``None`` for all."""
        return (self.variant_of(column) or self).observed

    def repetitions_of(self, column: str) -> tuple[int, bool]:
        """Return the number of repetitions of a column, and whether each has another seed."""
        block = (self.variant_of(column) or self).repetitions or Repetitions(1, ())
        return block.n_repeats, self.base(column) in block.methods

    def method(self, column: str, dataset: str | None = None) -> Method:
        """Return the method of a column with its settings in this study, on one dataset if named."""
        variant, base = self.variant_of(column), self.base(column)
        method = load_method(base)
        # Those of the variant come last, so that they win.
        for block in (*self.settings, *(variant.settings if variant else ())):
            if block.applies_to(base, dataset):
                method = method.with_params(block.set)
                method = replace(method, search={**method.search, **block.search}) if block.search else method
        if self.settings_for_members:
            members = {name: self._settings_of(name, dataset) for name in method.base_scores}
            method = replace(method, member_params={name: params for name, params in members.items() if params})
        return replace(method, name=column, title=f"{method.title} ({variant.name})") if variant else method

    def _settings_of(self, method: str, dataset: str | None) -> dict[str, Any]:
        """Return the arguments that the settings of the study change of a method."""
        blocks = (block.set for block in self.settings if block.applies_to(method, dataset))
        return {name: value for block in blocks for name, value in block.items()}


def load_study(name: str) -> Study:
    """Read ``conf/study/<name>.yaml``; ``methods: all`` means all methods.

    A study ``like: other`` takes the keys that it omits from ``conf/study/other.yaml``, which may be like a third
    study. The other study's settings for named datasets apply if this study has these datasets.
    """
    settings, chain = dict(read_settings("study", name)), [name]
    while other := settings.pop("like", None):
        if other in chain:
            raise ExperimentError(f"conf/study/{name}.yaml: like: {' -> '.join([*chain, str(other)])} is a circle")
        chain.append(str(other))
        taken = dict(read_settings("study", str(other)))
        if "datasets" in settings:
            taken["settings"] = _for_datasets(taken.get("settings"), settings["datasets"])
        settings = {**taken, **settings}
    return study_from(name, settings)


def _for_datasets(blocks: Any, datasets: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the blocks of settings of another study that apply to some datasets."""
    selected = []
    for block in blocks or ():
        named = block.get("datasets")
        shared = [dataset for dataset in named or () if dataset in datasets]
        if shared or not named:
            selected.append({**block, "datasets": shared} if named else block)
    return selected


def study_from(name: str, mapping: Mapping[str, Any]) -> Study:
    """Build a study from the content of its YAML.

    Raises
    ------
    ExperimentError
        If the content is malformed. The message names the file and the wrong key.
    """
    location = f"conf/study/{name}.yaml"
    values = _with_share(mapping, location)
    protocol, methods = values.get("protocol", "kfold5"), values.get("methods", "all")
    values["protocol"] = load_protocol(protocol) if isinstance(protocol, str) else protocol
    values["methods"] = package_names("method") if methods == "all" else methods
    for key in ("settings", "gate_cases", "variants"):
        if values.get(key, ()) is None:
            del values[key]
    variants = values.pop("variants", {})
    study: Study = convert(values, Study, location, error=ExperimentError, name=name)
    if not isinstance(variants, Mapping):
        raise ExperimentError(f"{location}: variants must be a mapping of names to settings, got {variants!r}")
    study = replace(study, variants={key: _variant(study, key, block) for key, block in variants.items()})
    for key, blocks in (("settings", study.settings), ("gate_cases", study.gate_cases)):
        _check_overrides(f"{location}: {key}", blocks, study)
    _check_repetitions(location, study.repetitions)
    return study


def _variant(study: Study, name: str, block: Any) -> Variant:
    """Build a variant from its block in the YAML of a study; what it omits is the study's."""
    at = f"variants.{name}"
    location = f"conf/study/{study.name}.yaml: {at}"
    inherited = {key: getattr(study, key) for key in ("methods", "datasets", "splits")}
    blocks = {"tune": study.tune, "repetitions": study.repetitions, "observed": study.observed}
    inherited |= {key: block and asdict(block) for key, block in blocks.items()}
    changes = _with_share(block, location)
    if "settings" in changes and changes["settings"] is None:
        del changes["settings"]
    variant: Variant = convert(
        {**inherited, **changes}, Variant, f"conf/study/{study.name}.yaml", at, ExperimentError, name=name
    )
    check_names(f"{location}.datasets", "dataset here", variant.datasets, study.datasets)
    check_names(f"{location}.methods", "method", variant.methods, names("method"))
    _check_overrides(f"{location}.settings", variant.settings, study)
    _check_repetitions(location, variant.repetitions)
    return variant


def _with_share(block: Any, location: str) -> Any:
    """Return a block with the short form of ``observed``, a number, written out."""
    if not isinstance(block, Mapping) or "observed" not in block:
        return dict(block) if isinstance(block, Mapping) else block
    observed = ObservedShare.from_setting(block["observed"], f"{location}: observed")
    return {**block, "observed": observed and observed.to_dict()}


def _check_overrides(location: str, blocks: tuple[Override, ...], study: Study) -> None:
    for index, block in enumerate(blocks):
        check_names(f"{location}[{index}].methods", "method", block.methods or (), names("method"))
        check_names(f"{location}[{index}].datasets", "dataset", block.datasets or (), study.datasets)


def _check_repetitions(location: str, block: Repetitions | None) -> None:
    if block:
        check_names(f"{location}: repetitions.methods", "method", block.methods, names("method"))


def check_study(study: Study) -> None:
    """Refuse unknown names in the settings of a study, and wrong arguments of its methods on each of its datasets.

    Raises
    ------
    ExperimentError
        If a name is unknown, or an argument is wrong.
    """
    where = f"conf/study/{study.name}.yaml"
    searches = [study.tune, *(variant.tune for variant in study.variants.values())]
    optimised = [search.metric for search in searches if search]
    if optimised:
        search_module()  # a missing Optuna is named before anything is fitted
    try:
        metrics = [name for name in study.metrics if name not in paper_metrics()]
        check_metrics([*metrics, study.headline, *optimised], study.conventions)
    except ExperimentError as error:
        raise ExperimentError(f"{where}: {error}") from None
    methods = [
        (study.method(name, dataset), study.tune_of(name) is not None)
        for name in study.all_methods
        for dataset in (None, *study.datasets_of(name))
    ]
    for case in study.gate_cases:
        methods += [(study.method(name).with_params(case.set), False) for name in case.methods or study.methods]
    # A list, because settings are dictionaries, which no set can hold.
    checked: list[Any] = []
    for method, searched in methods:
        settings = (method.identity(), method.preprocessing, searched)
        if settings not in checked:
            checked.append(settings)
            check_method(method, searched)
