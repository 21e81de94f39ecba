"""What methods there are, and the arguments of each."""

import argparse

from multilab.commands.methods import list_methods, show_method


def main(argv: list[str]) -> int:
    """`multilab methods list [FAMILY] | show NAME`."""
    parser = argparse.ArgumentParser(prog="multilab methods", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", metavar="list | show")
    verbs.add_parser("list", help="all methods, a line each").add_argument("family", nargs="?")
    verbs.add_parser("show", help="one method: arguments, search space, reference, notes").add_argument("name")
    arguments = parser.parse_args(argv or ["list"])
    return show_method(arguments.name) if arguments.verb == "show" else list_methods(arguments.family)
