"""Style of all figures: palette, fonts, axes, and conversion to text with the same bytes for the same numbers."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from multilab.core.messages import pip_install
from multilab.reports.errors import ReportError

if TYPE_CHECKING:  # matplotlib takes half a second to import and is in the extra "lab" only
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import Locator

INK, SOFT, PALE = "#1c2430", "#6b7482", "#d9dde3"
COLD, WARM = "#0b3c49", "#b3541e"
COLOURS = (COLD, WARM, "#7a8794", "#3f6b4f", "#8a4f7d", "#c2952b")
TINTS = (COLD, "#7ba5b4", PALE)
"""Three tints that differ in brightness, for bars."""
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = "os^DvPX*<>"

_SCALES = {"one_sided": ["#ffffff", TINTS[1], COLD], "two_sided": ["#7a3106", "#dba06f", "#ffffff", TINTS[1], COLD]}
_DIGITS_BEYOND_HUNDREDTHS = re.compile(r"(\.\d\d)\d+")
_REPEATED_SPACE = re.compile(r"(\s)\s+")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style to a block or, as a decorator, to a function; the user's matplotlib settings are ignored."""
    try:
        import matplotlib
    except ImportError as error:
        raise ReportError(f"figures need matplotlib: {pip_install('matplotlib')}") from error
    settings: Any = {
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "font.size": 8.5,
        "axes.labelsize": 8.5,
        "axes.linewidth": 0.7,
        "axes.edgecolor": SOFT,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "svg.hashsalt": "multilab",
        "svg.fonttype": "none",  # letters as text: a third of the bytes, and the reader's own sans-serif will do
        "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def new_axes(
    width: float,
    height: float,
    rows: int = 1,
    columns: int = 1,
    layout: Literal["constrained", "compressed"] | None = "constrained",
    panels: int | None = None,
    **options: Any,
) -> tuple[Canvas, np.ndarray]:
    """Return an empty canvas, unknown to pyplot, and its axes of shape (rows, columns).

    Parameters
    ----------
    width, height : float
        Inches.
    rows, columns : int
        Shape of the grid of axes.
    layout : {"constrained", "compressed"} or None
        Layout engine of matplotlib. None: none; half the time, for figures without long labels.
    panels : int, optional
        Number of axes that are used; the others are hidden.
    **options
        Further arguments of ``Figure.subplots``.
    """
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width, height), layout=layout)
    axes = canvas.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat[panels:] if panels is not None else ():
        ax.axis("off")
    return canvas, axes


def style_axes(
    ax: Axes,
    title: str = "",
    x: str = "",
    y: str = "",
    grid: Literal["both", "x", "y"] | None = "both",
    hidden: tuple[str, ...] = ("top", "right"),
) -> None:
    """Set title, axis labels, ticks, grid and spines of one panel."""
    ax.set_title(title, fontsize=9, color=INK)
    ax.set(xlabel=x, ylabel=y)
    ax.tick_params(labelsize=7, colors=SOFT)
    if grid:
        ax.grid(True, axis=grid, color=PALE, lw=0.5)
    for side in hidden:
        ax.spines[side].set_visible(False)


def curve_style(index: int, **changes: Any) -> dict[str, Any]:
    """Return colour, line and marker of one of several curves, which differ in grey too."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "ls": LINES[index % len(LINES)],
        "marker": MARKERS[index % len(MARKERS)],
        "ms": 3.5,
        "lw": 1.4,
        **changes,
    }


def colour_scale(name: Literal["one_sided", "two_sided"]) -> Colormap:
    """Return a colour scale: white to dark, or white at zero and equally dark at both ends."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, _SCALES[name])


def decades(axis: Axis, step: int = 1) -> None:
    """Scale an axis logarithmically and label its powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(base=10.0**step, numticks=20))
    axis.set_major_formatter(lambda value, _: "10" + f"{round(math.log10(value))}".translate(_SUPERSCRIPTS))
    axis.set_minor_locator(NullLocator())


def plain_labels(axis: Axis, ticks: Locator | Sequence[float]) -> None:
    """Put ticks at the given positions only, and label them with plain numbers."""
    from matplotlib.ticker import FixedLocator, Locator, NullLocator

    axis.set_major_locator(ticks if isinstance(ticks, Locator) else FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


@styled()
def svg_uri(canvas: Canvas) -> str:
    """Return the figure as a ``data:`` address of an SVG image: no date, coordinates to a hundredth of a point."""
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(
        r' (?:d|x|y|points)="[^"]*"',
        lambda match: _DIGITS_BEYOND_HUNDREDTHS.sub(r"\1", match[0]),
        buffer.getvalue().decode(),
    )
    content = base64.b64encode(_REPEATED_SPACE.sub(r"\1", text).encode())
    return f"data:image/svg+xml;base64,{content.decode('ascii')}"
