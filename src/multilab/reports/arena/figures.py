"""Figures of the arena's page: inline SVG whose colours are those of the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from multilab.statistics import pareto_front

__all__ = ["CostPoint", "cost_figure"]


@dataclass(frozen=True)
class CostPoint:
    """A method in a figure of quality against a cost: display name, cost (positive) and quality (more is better)."""

    title: str
    cost: float
    quality: float


def cost_figure(points: Sequence[CostPoint], cost: str, quality: str, label: str) -> str:
    """Return quality against a cost on a logarithmic axis as SVG, methods on the Pareto front joined and named.

    Parameters
    ----------
    points : sequence of CostPoint
        At least one.
    cost, quality : str
        Names of the axes.
    label : str
        Text of the figure for screen readers.
    """
    width, height, left, right, top, bottom = 560, 390, 56, 20, 26, 342
    low, high = _decades([point.cost for point in points])
    ticks = _ticks([point.quality for point in points])

    def x(value: float) -> float:
        return left + (math.log10(value) - low) / (high - low) * (width - left - right)

    def y(value: float) -> float:
        return bottom - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (bottom - top)

    named = {point.title: point for point in points}
    order = pareto_front({p.title: p.quality for p in points}, {p.title: p.cost for p in points})
    front = [named[title] for title in order]
    parts = [_open("costs", width, height, label)]
    parts += [
        _axis_tick(x(10.0**power), top, bottom, f"{10.0**power:g}", bottom + 16) for power in range(low, high + 1)
    ]
    for tick in ticks:
        parts.append(_line("grid", left, y(tick), width - right, y(tick)))
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(
        f'<text x="{(left + width - right) / 2:g}" y="{height - 10}" text-anchor="middle">{escape(cost)}</text>'
    )
    parts.append(f'<text x="{left - 46}" y="14">{escape(quality)}</text>')
    steps = " ".join(f"{x(point.cost):.1f},{y(point.quality):.1f}" for point in front)
    parts.append(f'<polyline class="front" points="{steps}"/>')
    for point in sorted(points, key=lambda item: item in front):
        kind = "best" if point in front else "other"
        text = f"{point.title}: {point.cost:.3g}, {point.quality:.0f}"
        parts.append(f'<circle class="{kind}" cx="{x(point.cost):.1f}" cy="{y(point.quality):.1f}" r="4.5">')
        parts.append(f"<title>{escape(text)}</title></circle>")
    parts += _labels([(x(point.cost), y(point.quality), point.title) for point in front], width - right, top)
    return "".join([*parts, "</svg>"])


def _labels(points: Sequence[tuple[float, float, str]], right: float, top: float) -> list[str]:
    """Return the names of points, moved up where they would cover the last one."""
    texts: list[str] = []
    boxes: list[tuple[float, float, float]] = []
    for x, y, title in points:
        length = 6.3 * len(title)
        start = x + 8 if x + 8 + length < right else x - 8 - length
        height = y - 7
        while any(abs(height - other) < 13 and start < end and start + length > begin for begin, end, other in boxes):
            height -= 4
        height = max(height, top - 4)
        boxes.append((start, start + length, height))
        texts.append(f'<text class="name" x="{start:.1f}" y="{height:.1f}">{escape(title)}</text>')
    return texts


def _open(kind: str, width: float, height: float, label: str) -> str:
    return (
        f'<svg class="figure {kind}" viewBox="0 0 {width} {height:g}" width="{width}" height="{height:g}" role="img" '
        f'aria-label="{escape(label)}">'
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _axis_tick(x: float, top: float, bottom: float, text: str, height: float | None = None) -> str:
    """Return a vertical line of the grid with its number: above it, or at a given height."""
    at = top - 6 if height is None else height
    return f'{_line("grid", x, top, x, bottom)}<text x="{x:.1f}" y="{at:g}" text-anchor="middle">{text}</text>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _ticks(values: Sequence[float]) -> list[float]:
    """Return about six round numbers that cover the values."""
    low, high = min(values), max(values)
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.floor(low / step)
    return [step * index for index in range(first, math.ceil(high / step) + 1)] if high > low else [low - 1, low + 1]
