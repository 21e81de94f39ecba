"""What datasets there are, how to get them, and how a file of yours reads."""

from __future__ import annotations

import argparse
import json
from typing import Any


def main(argv: list[str]) -> int:
    """`multilab datasets list | show NAME | fetch NAME... | check PATH [--labels-xml F | --labels-first N | ...]`."""
    parser = argparse.ArgumentParser(prog="multilab datasets", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | show | fetch | check")
    verbs.add_parser("list", help="all cards, a line each")
    verbs.add_parser("show", help="one card in full").add_argument("name")
    verbs.add_parser("fetch", help="get the files, verified by checksum").add_argument("names", nargs="+")
    check = verbs.add_parser("check", help="read a file and count what is in it")
    check.add_argument("path")
    which = check.add_mutually_exclusive_group()
    which.add_argument("--labels-xml", metavar="FILE", help="Mulan XML naming the labels (default: beside the ARFF)")
    which.add_argument("--labels-first", type=int, metavar="N", help="the first N columns are labels")
    which.add_argument("--labels-last", type=int, metavar="N", help="the last N columns are labels")
    which.add_argument("--label-columns", metavar="A,B", help="names of the label columns")
    check.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(argv)
    return {"list": _list, "show": _show, "fetch": _fetch, "check": _check}[asked.verb](asked)


def _list(_: Any) -> int:
    from multilab import datasets
    from multilab.ground.messages import printable

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


def _show(asked: Any) -> int:
    from multilab import datasets

    card = datasets.card(asked.name)
    meta = datasets.prepared_meta(asked.name)
    print(f"# {card.location}", card.location.read_text(), sep="\n", end="")
    if meta:
        facts = ("columns", "density", "distinct_label_sets", "rows_without_label", "labels_never_set", "source")
        print("# prepared here: " + ", ".join(f"{name} {meta[name]}" for name in facts if name in meta))
    return 0


def _fetch(asked: Any) -> int:
    from multilab import datasets

    for name in asked.names:
        for path in datasets.fetch(name):
            print(path)
    return 0


def _check(asked: Any) -> int:
    from multilab import datasets

    columns = asked.label_columns.split(",") if asked.label_columns else None
    options = {"labels_xml": asked.labels_xml, "labels_first": asked.labels_first, "labels_last": asked.labels_last}
    found = datasets.check(asked.path, label_columns=columns, **options)
    if asked.json:
        print(json.dumps(found, indent=1))
    else:
        print("\n".join(f"{key:<22} {value}" for key, value in found.items()))
    return 0
