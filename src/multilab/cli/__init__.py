"""The command line: a file per group of commands, each of which parses, calls one function, and prints.

Imports of the laboratory are in the bodies of the commands, so that help and completion are quick.
"""

from multilab.cli.main import main

__all__ = ["main"]
