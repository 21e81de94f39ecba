"""The command `multilab datasets add`: from a data file to a dataset that every command takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from multilab import datasets
from multilab.commands.data_versions import version_file
from multilab.commands.datasets import add_reader_options, naming_options
from multilab.core.shell import command, short_path
from multilab.core.text import visible
from multilab.datasets.own_cards import OwnDataset
from multilab.datasets.profiling import TableProfile

_SHOWN = 5  # entries of a list
_FEW = 5  # rows: fewer than the folds of the default protocol
_MANY = 50  # one-hot columns of a text column


def add_add_options(verbs: Any) -> None:
    """Add `add` with the options of the readers to the parser."""
    add = verbs.add_parser(
        "add",
        help="write the card of a file of your own, so that every command takes it",
        description="Read and profile a data file, copy it to data/own, write its card there, and version the file "
        "with DVC where there is a DVC repository. Text becomes one-hot columns and missing values are imputed, unless "
        "--text or --missing say otherwise.",
        epilog="Example: multilab datasets add my.csv --label-prefix tag_ --drop id --name mine",
        allow_abbrev=False,
    )
    add_reader_options(add)
    add.add_argument(
        "--text",
        choices=["one_hot", "drop", "error"],
        help="text features: 0/1 columns (default; free text is refused), leave out, or refuse",
    )
    add.add_argument(
        "--missing",
        choices=["impute", "keep", "error"],
        help="missing values: impute (default: median or most frequent value of all rows), keep as NaN, or refuse",
    )
    add.add_argument("--name", help="name of the dataset (default: that of the file)")
    add.add_argument("--reference", action="store_true", help="leave the file where it is and make a link to it")
    add.add_argument("--force", action="store_true", help="replace the dataset of this name")


def add_file(arguments: Any) -> int:
    """Add a data file; print its profile, what was written, and the next command."""
    options = {name: value for name, value in vars(arguments).items() if name not in ("verb", "path")}
    with naming_options(options):
        added = datasets.add_dataset(arguments.path, **options)
    lines = [*profile_lines(added.plan.profile, added.plan.content), *_written(added)]
    print("\n".join(map(visible, lines)))
    print(visible(f"version    {version_file(added, reference=arguments.reference)}"))
    print(f"next       {command('multilab')} compare dataset={added.card.name}")
    return 0


def profile_lines(profile: TableProfile, content: dict[str, Any]) -> list[str]:
    """Return what a user should know of a table before learning from it, a line each."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(profile.kinds.items()))
    lines = [f"rows       {profile.rows}", f"features   {profile.features}: {kinds}"]
    if profile.text or profile.free_text:
        of_text = {**profile.text, **profile.free_text}
        lines.append(f"text       {_counts(of_text, 'values')}")
    if profile.missing:
        lines.append(f"missing    {_counts(profile.missing, 'rows')}")
    labels = profile.labels
    rarest = sorted((label for label in labels if label.positive), key=lambda label: label.positive)
    mean_ir = sum(rarest[-1].positive / label.positive for label in rarest) / len(rarest)
    counts = _listed(f"{label.name} ({label.positive} rows)" for label in rarest)
    cardinality, without = content["cardinality"], content["rows_without_label"]
    lines.append(f"labels     {len(labels)}, {cardinality:.4g} per row, {without} rows without any")
    unobserved = {label.name: label.unobserved for label in labels if label.unobserved}
    if unobserved:
        total, of = sum(unobserved.values()), profile.rows * len(labels)
        lines.append(f"unobserved {total} of {of} label values: {_counts(unobserved, 'rows')}")
    lines.append(f"imbalance  MeanIR {mean_ir:.3g}; rarest: {counts}")
    if profile.empty:
        lines.append(f"note       left out, no row has a value: {_listed(profile.empty)}")
    lines += [f"note       {note}" for note in content["notes"]]
    return lines + [f"warning    {warning}" for warning in _warnings(profile)]


def _warnings(profile: TableProfile) -> list[str]:
    labels = profile.labels
    never = [label.name for label in labels if not label.positive]
    always = [label.name for label in labels if label.positive and not label.negative]
    few = [label.name for label in labels if 0 < label.positive < _FEW]
    wide = [name for name, count in profile.text.items() if count > _MANY]
    lines = []
    if profile.identifiers:
        lines.append(f"look like row identifiers, leave them out (drop): {_listed(profile.identifiers)}")
    if profile.leaks:
        reasons = (f"{name!r}: {reason}" for name, reason in profile.leaks.items())
        lines.append(f"features that may give labels away, leave them out (drop) if so: {_listed(reasons)}")
    if profile.duplicates:
        lines.append(
            f"{profile.duplicates} rows repeat the features of an earlier row, {profile.conflicts} of them with other "
            "labels: equal rows in training and test sets raise the scores"
        )
    if profile.constant:
        lines.append(f"features with one value only: {_listed(profile.constant)}")
    if wide:
        lines.append(f"more than {_MANY} one-hot columns each: {_listed(wide)}")
    if never:
        lines.append(f"labels that no row has: {_listed(never)}")
    if always:
        lines.append(f"labels that every row has: {_listed(always)}")
    if few:
        lines.append(f"labels with fewer than {_FEW} rows, so that some folds have none: {_listed(few)}")
    return lines


def _written(added: OwnDataset) -> list[str]:
    kind = "linked to" if added.path.is_symlink() else "copied to"
    return [f"data       {added.plan.path} {kind} {added.path}", f"card       {short_path(added.card.location)}"]


def _counts(counts: dict[str, int], unit: str) -> str:
    return _listed(f"{name} ({count} {unit})" for name, count in counts.items())


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more
