"""The commands about the arena."""

from __future__ import annotations

import click


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def arena(argv: tuple[str, ...]) -> int:
    """The arena: leaderboards and pages."""
    from multilab.stages.arena import main

    return main(list(argv))
