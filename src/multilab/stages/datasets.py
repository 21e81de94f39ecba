"""List and show dataset cards, fetch their files, and check a data file."""

import argparse

from multilab.commands.datasets import add_check_options, check_file, fetch_files, list_cards, show_card


def main(argv: list[str]) -> int:
    """`multilab datasets list | show NAME | fetch NAME... | check PATH [--labels A,B | --labels-xml F | ...]`."""
    parser = argparse.ArgumentParser(prog="multilab datasets", description=__doc__, allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | show | fetch | check")
    verbs.add_parser("list", help="all cards, a line each")
    verbs.add_parser("show", help="one card in full").add_argument("name")
    verbs.add_parser("fetch", help="get the files, verified by checksum").add_argument("names", nargs="+")
    add_check_options(verbs)
    arguments = parser.parse_args(argv)
    verb_functions = {"list": list_cards, "show": show_card, "fetch": fetch_files, "check": check_file}
    return verb_functions[arguments.verb](arguments)
