"""From a figure to text that a page can hold, the same bytes for the same numbers."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from multilab.reports.errors import ReportError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["new_figure", "png_bytes", "styled", "svg_uri"]


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
        "svg.fonttype": "path",
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
    """Return the figure as a ``data:`` address of an SVG image without a date."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def png_uri(figure: Figure, dpi: int = 150) -> str:
    """Return the figure as a ``data:`` address of a PNG image: a tenth of the SVG where there are many cells."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(figure, dpi)).decode("ascii")


def png_bytes(figure: Figure, dpi: int = 160) -> bytes:
    """Return the figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()
