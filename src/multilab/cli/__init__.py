"""The command line, one file per group of commands. A command parses its options, calls one function, and prints.

The commands import the laboratory in their bodies, so that help and completion are quick.
"""

from multilab.cli.main import main

__all__ = ["main"]
