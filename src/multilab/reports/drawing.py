"""From a figure to text that a page can hold, the same bytes for the same numbers."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from multilab.reports.errors import ReportError

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["decades", "new_figure", "png_bytes", "styled", "svg_uri"]


_LONG = re.compile(r"(\.\d\d)\d+")
_GAPS = re.compile(r"(\s)\s+")


@contextmanager
def styled() -> Iterator[None]:
    """Use one look for all figures, and nothing of the user's own matplotlib settings, within the block."""
    try:
        import matplotlib
    except ImportError as error:
        raise ReportError("figures need matplotlib: pip install 'multilab[lab]'") from error
    settings: Any = {
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "font.size": 8.5,
        "axes.labelsize": 8.5,
        "axes.linewidth": 0.7,
        "axes.edgecolor": "#6b7482",
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "svg.hashsalt": "multilab",
        "svg.fonttype": "none",  # letters as text: a third of the bytes, and the reader's own sans-serif will do
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def new_figure(width: float, height: float, layout: Literal["constrained", "compressed"] = "constrained") -> Figure:
    """Return an empty figure of the given inches, unknown to pyplot, so that nothing is left open."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


def svg_uri(figure: Figure) -> str:
    """Return the figure as a ``data:`` address of an SVG image: no date, coordinates to a hundredth of a point."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue().decode()
    drawn = re.sub(r' (?:d|x|y|points)="[^"]*"', lambda found: _LONG.sub(r"\1", found[0]), drawn)
    return "data:image/svg+xml;base64," + base64.b64encode(_GAPS.sub(r"\1", drawn).encode()).decode("ascii")


def png_uri(figure: Figure, dpi: int = 110) -> str:
    """Return the figure as a ``data:`` address of a PNG image of 255 colours, for figures of many cells.

    On a page of heat maps this takes a third of the bytes of true colour at print resolution. The colours are spread
    over those of the figure (no channel is off by more than 8 of 255): the usual median cut merges the rare dark ends
    of a scale.
    """
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png_bytes(figure, dpi))) as drawn:
        palette = drawn.convert("RGB").quantize(255, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        palette.save(buffer, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def png_bytes(figure: Figure, dpi: int = 160) -> bytes:
    """Return the figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def decades(axis: Axis, step: int = 1) -> None:
    """Scale an axis logarithmically and write its powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(base=10.0**step, numticks=20))
    axis.set_major_formatter(lambda value, _: "10" + f"{round(math.log10(value))}".translate(_RAISED))
    axis.set_minor_locator(NullLocator())


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
