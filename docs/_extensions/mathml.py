"""Sphinx extension: formulas as MathML, which browsers typeset without a script from the network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
_ARGUMENT = r"(\\[a-zA-Z]+|\w)"  # an argument without braces


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(node: Any, as_block: bool = False) -> str:
    """Return a formula as MathML; one that cannot be read is a warning and stays TeX."""
    tex = re.sub(rf"\\([td]?frac)\s*{_ARGUMENT}\s*{_ARGUMENT}", r"\\\1{\2}{\3}", node.astext())
    try:
        return tex2mathml(tex.replace(r"\dots", r"\ldots"), as_block=as_block)
    except MathError as error:
        _LOG.warning("formula: %s", error, location=node)
        return f"<code>{tex}</code>"


def inline(translator: Any, node: Any) -> None:
    """Write a formula in a line of text."""
    translator.body.append(mathml(node))
    raise nodes.SkipNode


def block(translator: Any, node: Any) -> None:
    """Write a formula in a paragraph of its own."""
    translator.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode
