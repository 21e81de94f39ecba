"""Dataset cards and data files on the terminal."""

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from multilab import datasets
from multilab.core.messages import printable
from multilab.core.text import visible
from multilab.datasets.file_access import ENCODINGS

_SHOWN = 20  # entries of a long list


def add_check_options(verbs: Any) -> None:
    """Add `check` with the options of the readers to the parser."""
    check = verbs.add_parser(
        "check",
        help="read a file and count what is in it",
        description="Read a data file, count what is in it, and say what `multilab train` would refuse (exit code 2). "
        "The options are those under `reader:` of a dataset card, with '-' for '_'.",
        allow_abbrev=False,
    )
    add_reader_options(check)
    check.add_argument("--text", choices=["error", "one_hot"], help="text features: refuse (default), or 0/1 columns")
    check.add_argument(
        "--missing",
        choices=["error", "keep", "impute"],
        help="missing values: refuse (default), keep as NaN, or impute (median or most frequent value of all rows)",
    )
    check.add_argument("--json", action="store_true", help="print JSON")


def add_reader_options(check: argparse.ArgumentParser) -> None:
    """Add the path of a data file and the options of the readers to a parser."""
    check.add_argument("path")
    which = check.add_mutually_exclusive_group()
    which.add_argument(
        "--label-columns", "--labels", metavar="A,B", help="label columns, patterns such as 'tag_*', or a file of them"
    )
    which.add_argument("--label-prefix", metavar="TEXT", help="labels are the columns whose names begin with TEXT")
    which.add_argument("--labels-first", type=int, metavar="N", help="the first N columns are labels")
    which.add_argument("--labels-last", type=int, metavar="N", help="the last N columns are labels")
    which.add_argument("--labels-xml", metavar="FILE", help="Mulan XML naming the labels (default: next to the ARFF)")
    which.add_argument("--label-names", metavar="A,B", type=_names, help="labels of a file that does not name them")
    check.add_argument("--drop", metavar="A,B", help="columns to leave out, such as row identifiers")
    check.add_argument(
        "--missing-labels",
        choices=["error", "keep"],
        help="missing values in label columns: refuse (default), or keep as labels that were not observed",
    )
    check.add_argument("--encoding", choices=ENCODINGS, help="encoding of text (default: UTF-8 or Windows-1252)")
    check.add_argument(
        "--header",
        metavar="true|false",
        type=_truth,
        help="whether the first line of a CSV file names the columns (default); without, they are c1, c2, ...",
    )
    check.add_argument(
        "--decimal", choices=[".", ","], help="decimal separator of a CSV file; the other one may separate thousands"
    )
    check.add_argument("--format", choices=["arff", "csv", "mat", "parquet", "svmlight", "xc"], help="default: by name")
    check.add_argument("--keys", metavar="KEY=VARIABLE,...", type=_keys, help="variables of a MATLAB file")
    check.add_argument("--n-features", type=int, metavar="N", help="number of features of an svmlight file")
    check.add_argument("--first-feature", type=int, choices=[0, 1], help="index of its first feature")
    check.add_argument("--first-label", type=int, choices=[0, 1], help="index of its first label")


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _keys(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name and variable for name, _, variable in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form data=X,target=Y")
    return {name.strip(): variable.strip() for name, _, variable in pairs}


def list_cards(_: Any) -> int:
    """Print a line per dataset card."""
    print(f"{'name':<22}{'instances':>10}{'features':>10}{'labels':>8}{'cardinality':>13}  title")
    for name in datasets.cards():
        try:
            card = datasets.card(name)
        except datasets.DatasetError as error:  # the others are listed all the same
            print(f"{name:<63}  [broken card: {printable(str(error))}]")
            continue
        expected = card.expected
        counts = [expected.instances, expected.features, expected.labels, expected.cardinality]
        counts = ["" if count is None else count for count in counts]
        note = "" if card.available else f"  [not available: {card.reason}]"
        print(f"{name:<22}{counts[0]:>10}{counts[1]:>10}{counts[2]:>8}{counts[3]:>13}  {printable(card.title + note)}")
    return 0


def show_card(arguments: Any) -> int:
    """Print one card, and facts of its prepared data with the imbalance of its labels."""
    card = datasets.card(arguments.name)
    meta = datasets.prepared_meta(arguments.name)
    print(f"# {card.location}", card.location.read_text(), sep="\n", end="")
    if meta:
        facts = ["columns", "density", "distinct_label_sets", "rows_without_label", "labels_never_set", "source"]
        facts += ["unobserved_labels"] if meta.get("unobserved_labels") else []
        print("# prepared here: " + ", ".join(f"{name} {meta[name]}" for name in facts if name in meta))
        for line in [*_remarks(meta), *_imbalance(datasets.load(arguments.name))]:
            print(f"# {line}")
    return 0


def _imbalance(data: datasets.Dataset) -> list[str]:
    """Return the measures of label imbalance, and those of the rarest labels."""
    import numpy as np

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


def fetch_files(arguments: Any) -> int:
    """Fetch the files of datasets, verified by checksum."""
    for name in arguments.names:
        for path in datasets.fetch(name):
            print(path)
    return 0


def check_file(arguments: Any) -> int:
    """Read a data file and print what is in it; refuse what `multilab train` would refuse."""
    options = {name: value for name, value in vars(arguments).items() if name not in ("verb", "path", "json")}
    with naming_options(options):
        content = datasets.check(arguments.path, **options)
    if arguments.json:
        print(json.dumps(content, indent=1))
    else:
        apart = ("id_like", "notes", "refused")
        print("\n".join(f"{key:<22} {_shown(value)}" for key, value in content.items() if key not in apart))
        for line in _remarks(content):
            print(line)
    if content["refused"]:
        raise datasets.DatasetError(content["refused"], arguments.path)
    return 0


@contextmanager
def naming_options(options: Iterable[str]) -> Iterator[None]:
    """Name the options in the message of an error as the command line does, not as a card and Python do."""
    try:
        yield
    except datasets.DatasetError as error:
        every, unusual = "|".join(options), "|".join(name for name in options if "_" in name)
        forms = rf"\b({every})=|(?<=\()({every})(?=\))|\b({unusual})\b"
        reason = re.sub(forms, lambda name: "--" + name[0].replace("_", "-").replace("=", " "), error.reason)
        raise datasets.DatasetError(reason, error.path, error.line) from None


def _shown(value: Any) -> str:
    """Return a value as text without control characters; of a long list the first entries."""
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return visible(f"{value[:_SHOWN]}{more}")
    return visible(str(value))


def _remarks(content: dict[str, Any]) -> list[str]:
    """Return what a user should know of a data set: what the reader did, and features that look like identifiers."""
    ids = content.get("id_like", [])
    lines = [f"note: {note}" for note in content.get("notes", [])]
    if ids:
        lines.append(f"warning: look like row identifiers, leave them out with drop: {_shown(ids)}")
    return lines
