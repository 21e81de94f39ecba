"""List and show dataset cards, fetch their files, and check or add a data file."""

import argparse

from multilab.commands.datasets import add_check_options, check_file, fetch_files, list_cards, show_card
from multilab.commands.own_data import add_add_options, add_file


def main(argv: list[str]) -> int:
    """`multilab datasets list | show NAME | fetch NAME... | check PATH [--labels A,B | ...] | add PATH [...]`."""
    parser = argparse.ArgumentParser(prog="multilab datasets", description=__doc__, allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | show | fetch | check | add")
    verbs.add_parser("list", help="all cards, a line each")
    verbs.add_parser("show", help="one card in full").add_argument("name")
    verbs.add_parser("fetch", help="get the files, verified by checksum").add_argument("names", nargs="+")
    add_check_options(verbs)
    add_add_options(verbs)
    arguments = parser.parse_args(argv)
    functions = {"list": list_cards, "show": show_card, "fetch": fetch_files, "check": check_file, "add": add_file}
    return functions[arguments.verb](arguments)
