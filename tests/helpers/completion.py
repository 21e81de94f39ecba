"""Completion as a shell asks for it."""

from __future__ import annotations

import os
from unittest import mock

from click.shell_completion import get_completion_class

from multilab.cli.main import root


def candidates(line: str) -> list[str]:
    """Return what completion offers for the end of a command line."""
    shell = get_completion_class("bash")
    with mock.patch.dict(os.environ, MULTILAB_LINE=line):
        return shell(root, {}, "multilab", "").complete().splitlines()
