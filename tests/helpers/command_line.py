"""The command line as tests see it: its commands, what a line calls, and what a shell would complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest import mock

import click
from click.shell_completion import get_completion_class

from multilab.cli import completion  # noqa: F401  (knows the shells)
from multilab.cli.main import root


def commands(group: click.Group = root, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group with the words that call it, those that only DVC calls too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def parse(argv: list[str]) -> None:
    """Parse a command line, its options and arguments; nothing is run.

    Raises
    ------
    click.UsageError
    """
    command: click.Command | None = root
    while isinstance(command, click.Group) and argv:
        _, command, argv = command.resolve_command(click.Context(command), argv)
    if argv:
        command.make_context("multilab", argv)


def candidates(line: str) -> list[str]:
    """Return what completion offers for the end of a command line."""
    shell = get_completion_class("bash")
    with mock.patch.dict(os.environ, MULTILAB_LINE=line):
        return shell(root, {}, "multilab", "").complete().splitlines()
