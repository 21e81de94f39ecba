"""The commands about datasets: list, show, add, check, fetch, doubt."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilab.cli.files import FEW, named_dataset, naming_flags, profile_lines, reader_options
from multilab.cli.options import DATASET, FILE, FOLDS, METHOD, engine_options
from multilab.core import report_dir
from multilab.core.messages import pip_install, printable
from multilab.core.shell import command, short_path
from multilab.core.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilab.datasets import Card, Dataset
    from multilab.datasets.own_cards import OwnDataset

_SHOWN = 20  # entries of a long list


@click.group()
def datasets() -> None:
    """List and show datasets, add your own file."""


@datasets.command("list")
def list_cards() -> None:
    """List all datasets, one per line."""
    from multilab.datasets import DatasetError, cards
    from multilab.datasets import card as card_of

    print(f"{'name':<22}{'instances':>10}{'features':>10}{'labels':>8}{'cardinality':>13}  title")
    for name in cards():
        try:
            card = card_of(name)
        except DatasetError as error:  # the others are listed all the same
            print(f"{name:<63}  [broken card: {printable(str(error))}]")
            continue
        expected = card.expected
        counts = [expected.instances, expected.features, expected.labels, expected.cardinality]
        counts = ["" if count is None else count for count in counts]
        note = "" if card.available else f"  [not available: {card.reason}]"
        print(f"{name:<22}{counts[0]:>10}{counts[1]:>10}{counts[2]:>8}{counts[3]:>13}  {printable(card.title + note)}")


@datasets.command("show")
@click.argument("name", type=DATASET)
def show_card(name: str) -> None:
    """Show the card of a dataset and its label imbalance.

    The imbalance is shown if the data are prepared.
    """
    from multilab.datasets import card as card_of
    from multilab.datasets import load, prepared_meta

    card, meta = card_of(name), prepared_meta(name)
    print(f"# {card.location}", card.location.read_text("utf-8"), sep="\n", end="")
    if meta:
        facts = ["columns", "density", "distinct_label_sets", "rows_without_label", "labels_never_set", "source"]
        facts += ["unobserved_labels"] if meta.get("unobserved_labels") else []
        print("# prepared here: " + ", ".join(f"{fact} {meta[fact]}" for fact in facts if fact in meta))
        for line in [*_remarks(meta), *_imbalance(load(name))]:
            print(f"# {line}")


@datasets.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=DATASET)
@click.option("--copy", is_flag=True, help="Copy files from elsewhere to data/raw/NAME, as the pipeline does.")
def fetch(names: tuple[str, ...], copy: bool) -> None:
    """Download the files of datasets and verify them.

    \b
    multilab datasets fetch emotions yeast

    A file comes from the folder MULTILAB_DATA, from the cache of this machine, or from the address in its card. The
    command prints the paths.
    """
    from multilab.datasets import fetch as fetch_files

    for name in names:
        for path in fetch_files(name, copy=copy):
            print(path)


@datasets.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=DATASET)
def prepare(names: tuple[str, ...]) -> None:
    """Read datasets into matrices.

    \b
    multilab datasets prepare emotions genes-toy

    The command writes the matrices to data/prepared/NAME, as the stage `preprocess` of data/dvc.yaml does, and checks
    their counts and digests against the card. Other commands prepare the datasets that they need.
    """
    from multilab.datasets import prepare as prepare_files

    for name in names:
        print(prepare_files(name, as_output=True).path)


@datasets.command()
@click.argument("path")
@reader_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(path: str, reader: dict[str, Any], as_json: bool) -> None:
    """Read a data file and summarise its content.

    \b
    multilab datasets check my.csv --labels 'tag_*'

    The command refuses a file (exit code 2) that `multilab train` would refuse. The options are those of `reader:` in a
    dataset card, with '-' for '_'.
    """
    from multilab.datasets import check as check_file

    with naming_flags():
        content = check_file(path, **reader)
    if as_json:
        print(json.dumps(content, indent=1))
    else:
        apart = ("id_like", "notes")
        print("\n".join(f"{key:<22} {_shown(value)}" for key, value in content.items() if key not in apart))
        for line in _remarks(content):
            print(line)


@datasets.command()
@click.argument("path")
@reader_options
@click.option("--name", metavar="NAME", help="Name of the dataset (default: the name of the file).")
@click.option("--reference", is_flag=True, help="Link to the file instead of copying it.")
@click.option("--force", is_flag=True, help="Replace the dataset of this name.")
def add(path: str, reader: dict[str, Any], **options: Any) -> None:
    """Add your own file as a dataset.

    \b
    multilab datasets add my.csv --label-prefix tag_ --drop id --name mine

    Afterwards, every command accepts its name. The file is read, profiled and copied to data/own with its card, and
    versioned with DVC in a DVC repository. It stays a table: the encoding of text, categories, dates and missing values
    is learned from the training rows of each model.
    """
    from multilab.datasets import add_dataset

    with naming_flags():
        added = add_dataset(path, **reader, **options)
    lines = [*profile_lines(added.plan.profile, added.plan.content), *_written(added)]
    print("\n".join(map(visible, lines)))
    print(visible(f"version    {_version_files(added.paths, options['reference'])}"))
    print(f"next       {command('multilab')} compare --dataset {added.card.name}")


@datasets.command()
@click.argument("name", type=DATASET)
@click.option(
    "--method", type=METHOD, metavar="NAME,...", help="Names and patterns (default: linear, trees, neighbours)."
)
@click.option(
    "--ranking",
    type=click.Choice(["methods", "cleanlab"]),
    default="methods",
    show_default=True,
    help="Rank by the number of methods that doubt a label, or by cleanlab (needs the package).",
)
@click.option("--cv", type=FOLDS, default=5, show_default=True, help="Number of stratified folds.")
@click.option("-o", "--output", metavar="FOLDER", help="Folder for the page and the table (reports/doubt/NAME).")
@click.option("--mask", is_flag=True, help="Add a dataset in which the doubted labels are not observed.")
@click.option("--corrected", type=FILE, help="Add a dataset with the corrections in this table, and fit nothing.")
@click.option("--name", "new_name", metavar="NAME", help="Name of the added dataset (NAME-masked, NAME-corrected).")
@click.option("--force", is_flag=True, help="Replace the dataset of this name.")
@engine_options
@reader_options(shown=FEW)
def doubt(
    name: str,
    method: str | None,
    ranking: str,
    cv: int,
    output: str | None,
    mask: bool,
    corrected: Path | None,
    new_name: str | None,
    force: bool,
    reader: dict[str, Any],
) -> None:
    """Find labels that are probably wrong.

    \b
    multilab datasets doubt songs                              write the page and doubts.csv
    multilab datasets doubt songs --corrected doubts.csv       after editing the column corrected
    multilab datasets doubt songs --mask                       hide the doubted labels, if nobody can check them

    NAME is a dataset or a data file. Each method scores the rows of a fold after a fit to the other folds; fits that
    `multilab compare` has stored are reused. A method doubts a given value (0 or 1) if it finds the other value more
    probable, with at least the mean probability of that value in the rows where it is given. The values that all
    methods doubt come first.

    doubts.csv has a line per label value with the columns row (from 1), label, given, probability, methods, doubted and
    corrected. Write 0, 1, or ? for "nobody knows" into the column corrected. --corrected then adds the corrected data
    as a new dataset in data/own. Lines without an entry change nothing; a table that was made from other data is
    refused.

    The guide page on wrong labels says when not to mask. In Python: multilab.statistics.label_doubts.
    """
    from multilab.datasets import add_corrected

    if mask and corrected:
        raise click.UsageError("--mask and --corrected exclude each other.")
    if (new_name or force) and not (mask or corrected):
        raise click.UsageError("--name and --force need --mask or --corrected, which add a dataset.")
    dataset = named_dataset(name, reader)
    adding: dict[str, Any] = {"name": new_name or f"{dataset}-{'masked' if mask else 'corrected'}", "force": force}
    if corrected:
        with naming_flags():
            _print_added(*add_corrected(dataset, corrected, **adding))
        return
    from multilab.comparison.doubt import find_doubts
    from multilab.reports.doubt_page import TABLE, write_doubt_page

    found = find_doubts(
        dataset, methods=method, ranking=ranking, cv=cv, progress=lambda line: print(line, file=sys.stderr, flush=True)
    )
    folder = Path(output) if output else report_dir("doubt") / dataset
    again = f"{command('multilab')} datasets doubt {dataset}"
    commands = [f"{again} --corrected {folder / TABLE}", f"{again} --mask"]
    settings = {"dataset": dataset, "digest": found.data.digest, "ranking": ranking, "folds": cv}
    page = write_doubt_page(found, folder, commands=commands, settings=settings)
    table = found.table.head(_SHOWN).drop(columns="doubted")
    table = table.assign(row=table["row"] + 1, label=table["label"].map(lambda label: visible(label)[:40]))
    if len(table):
        print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    values = found.data.Y.shape[0] * found.data.Y.shape[1]
    by = "cleanlab" if ranking == "cleanlab" else "all of " + ", ".join(found.methods)
    lines = [f"{found.table['doubted'].sum()} of {values} label values are doubted by {by}"]
    lines += [f"without {each}: {reason}" for each, reason in found.left_out.items()]
    print("\n".join(map(visible, [*lines, f"page       {page}", f"table      {folder / TABLE}"])))
    if mask:
        with naming_flags():
            _print_added(*add_corrected(dataset, found.masks, **adding))
    else:
        print(f"next       {commands[0]}")


def _print_added(card: Card, table: Path) -> None:
    lines = [f"dataset    {card.title}", f"table      {table}", f"card       {short_path(card.location)}"]
    print("\n".join(map(visible, [*lines, f"version    {_version_files([table])}"])))
    print(f"next       {command('multilab')} compare --dataset {card.name}")


def _imbalance(data: Dataset) -> list[str]:
    """Return the measures of label imbalance, and those of the rarest labels, as lines."""
    import numpy as np

    from multilab import datasets

    ratios, concurrence, rows = datasets.irlbl(data.Y), datasets.scumble_lbl(data.Y), (data.Y == 1).sum(axis=0)
    rarest = np.argsort(rows, kind="stable")[:_SHOWN]
    names = [visible(data.label_names[label]) for label in rarest]
    width = max(len("rarest labels"), *map(len, names))
    return [
        f"imbalance of the labels: MeanIR {datasets.mean_ir(data.Y):.4g}, CVIR {datasets.cvir(data.Y):.4g}, "
        f"SCUMBLE {datasets.scumble(data.Y):.4f}",
        f"{'rarest labels':<{width}} {'rows':>7} {'IRLbl':>9} {'SCUMBLELbl':>11}",
        *(
            f"{name:<{width}} {rows[label]:>7} {ratios[label]:>9.4g} {concurrence[label]:>11.4f}"
            for name, label in zip(names, rarest, strict=True)
        ),
    ]


def _shown(value: Any) -> str:
    """Return a value as text without control characters; only the first entries of a long list."""
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return visible(f"{value[:_SHOWN]}{more}")
    return visible(str(value))


def _remarks(content: dict[str, Any]) -> list[str]:
    """Return what a user should know about a dataset: notes of the reader, and features that look like identifiers."""
    ids = content.get("id_like", [])
    lines = [f"note: {note}" for note in content.get("notes", [])]
    if ids:
        lines.append(f"warning: these features look like row identifiers; leave them out with drop: {_shown(ids)}")
    return lines


def _written(added: OwnDataset) -> list[str]:
    kind = "linked to" if added.path.is_symlink() else "copied to"
    kind = f"unchanged, it is already {kind}" if added.unchanged else kind
    files = zip(added.plan.files.values(), added.paths, strict=True)
    lines = [f"data       {file} {kind} {path}" for file, path in files]
    return [*lines, f"card       {short_path(added.card.location)}"]


def _version_files(paths: Sequence[Path], reference: bool = False) -> str:
    """Let DVC version files of a dataset; return what was done, or why it was not.

    A file that is only linked is not versioned: its card has the checksum, so that a change is noticed.
    """
    checksum = "the card has its sha256"
    if reference:
        return f"not versioned, the file stays where it is; {checksum}"
    if not _in_repository(Path.cwd()):
        return f"not versioned, no DVC repository here (`git init && dvc init` makes one); {checksum}"
    if find_spec("dvc") is None:
        return f"not versioned, DVC is not installed: {pip_install('dvc')}; {checksum}"
    import subprocess

    run = subprocess.run(
        [sys.executable, "-m", "dvc", "add", "--quiet", *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        reason = (run.stderr.strip() or "unknown reason").splitlines()[-1].removeprefix("ERROR: ")
        return f"not versioned, dvc add failed ({reason}); {checksum}"
    written = ", ".join(f"{path}.dvc" for path in paths)
    return f"{written} (to commit: git add {paths[0].parent}; `{command('dvc')} push` shares the data)"


def _in_repository(folder: Path) -> bool:
    """Return whether a folder belongs to a DVC repository."""
    return any((parent / ".dvc").is_dir() for parent in (folder, *folder.parents))
