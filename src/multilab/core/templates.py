"""Templates of the pages, which are in ``reports/templates``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from multilab.core.errors import MultilabError
from multilab.core.messages import pip_install
from multilab.core.paths import _PACKAGE


def template(
    name: str, common: Mapping[str, Any] | None = None, filters: Mapping[str, Callable[..., Any]] | None = None
) -> Any:
    """Return a template; it and the templates that it imports see the variables ``common``.

    Raises
    ------
    MultilabError
        If Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise MultilabError(f"a page needs Jinja2: {pip_install('jinja2')}") from error
    engine = Environment(
        loader=FileSystemLoader(_PACKAGE / "reports" / "templates"),
        autoescape=lambda name: not str(name).endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters |= filters or {}
    engine.globals |= common or {}
    return engine.get_template(name)
