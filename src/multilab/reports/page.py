"""The one way to make a page: a self-contained file from a template, with the filters that turn values into text."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.core import write_atomically
from multilab.core.templates import template as jinja_template
from multilab.core.text import listed
from multilab.reports.data import metric_title
from multilab.reports.tables.entry import number, p_text


def write_page(path: Path, name: str, content: Mapping[str, Any], common: Mapping[str, Any] | None = None) -> Path:
    """Write a page from a template of this package, and return its path.

    Parameters
    ----------
    path : Path
    name : str
        Of the template.
    content : mapping
        Its variables.
    common : mapping, optional
        Variables that the templates it imports see, too.

    Raises
    ------
    MultilabError
        If the extra ``lab`` is not installed.
    """
    write_atomically(path, template(name, common).render(content))
    return path


def template(name: str, common: Mapping[str, Any] | None = None) -> Any:
    """Return a template with the filters of reports; ``common`` are variables that it and what it imports see."""
    filters: dict[str, Callable[..., Any]] = {
        "number": number,
        "metric_title": metric_title,
        "p_value": p_text,
        "plain": plain_text,
        "percent": "{:.0%}".format,
        "all_of": lambda names: listed(names, len(names)),
        "headline_of": lambda report: metric_title(report.primary[0]),
    }
    return jinja_template(name, common, filters)


def flat(value: Mapping[str, Any] | None, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as (dotted name, text) lines."""
    lines: list[tuple[str, str]] = []
    for key, item in (value or {}).items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            lines += flat(item, f"{name}.")
        elif item is not None:
            lines.append((name, plain_text(item)))
    return lines


def plain_text(value: Any) -> str:
    """Return a value as a reader would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return ", ".join(map(plain_text, value))
    return str(value)
