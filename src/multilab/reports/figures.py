"""Figures that are readable in grey: critical-difference diagrams, heatmaps, convergence curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.reports.errors import ReportError
from multilab.statistics import Comparison, Summary

if TYPE_CHECKING:  # matplotlib takes half a second to import and is in the extra "lab" only
    from matplotlib.axes import Axes

__all__ = ["cd_diagram", "convergence", "dots", "heatmap"]

_INK, _SOFT, _PALE = "#1c2430", "#6b7482", "#d9dde3"
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS = "os^DvPX*<>"
_GREYS = ("#0b3c49", "#7a8794", "#b3541e", "#3f6b4f", "#a9a9a9", "#5b3f73")


def cd_diagram(
    comparison: Comparison, ax: Axes, titles: Mapping[str, str] | None = None, test: str = "nemenyi"
) -> None:
    """Draw average ranks with the differences that a post-hoc test does not find significant.

    Parameters
    ----------
    comparison : Comparison
        The one result that tables read too; at least two methods and one dataset.
    ax : matplotlib Axes
        Emptied of its frame; about 0.3 inch of height per pair of methods, plus 1 inch.
    titles : mapping, optional
        Printed names of methods.
    test : {"nemenyi", "bonferroni-dunn"}
        Nemenyi: thick bars join methods that do not differ. Bonferroni-Dunn: the grey band holds the methods
        that do not differ from the control.

    Raises
    ------
    ReportError
        For an unknown test, one without a control, or a comparison that has no critical difference.

    Notes
    -----
    J. Demsar (2006), JMLR 7, figures 1 and 2. The best method is on the left.
    """
    cd = {"nemenyi": comparison.cd_nemenyi, "bonferroni-dunn": comparison.cd_bonferroni_dunn}.get(test)
    if cd is None or (test == "bonferroni-dunn" and comparison.control is None):
        raise ReportError(
            f"no {test} diagram of {comparison.metric or 'this comparison'}: nothing to compare"
        )
    ranks, k = comparison.ranks, comparison.k
    order = sorted(ranks, key=lambda name: (ranks[name], name))
    bars = _stack([(ranks[g[0]], ranks[g[-1]]) for g in comparison.groups]) if test == "nemenyi" else []
    top_of_names = 0.55 + 0.22 * max((level + 1 for *_, level in bars), default=0)
    left = (k + 1) // 2
    bottom = top_of_names + 0.42 * max(left, k - left)
    margin = 0.42 * max(k - 1, 2)
    ax.set(xlim=(1 - margin, k + margin), ylim=(bottom, -1.25))
    ax.axis("off")
    ax.hlines(0, 1, k, color=_INK, lw=1.1)
    for tick in range(1, k + 1):
        ax.vlines(tick, -0.14, 0, color=_INK, lw=1.1)
        ax.text(tick, -0.24, str(tick), ha="center", va="bottom", color=_INK, fontsize=8)
    _ruler(ax, cd, min(1.0, k - cd), f"CD = {cd:.3f}")
    for place, name in enumerate(order):
        on_left = place < left
        y = top_of_names + 0.42 * (place if on_left else k - 1 - place)
        end = 1 - 0.04 * margin if on_left else k + 0.04 * margin
        chosen = name == comparison.control
        ax.plot(
            [ranks[name], ranks[name], end],
            [0, y, y],
            color=_INK,
            lw=1.5 if chosen else 0.8,
            solid_joinstyle="miter",
        )
        label = (titles or {}).get(name, name)
        text = f"{label}  {ranks[name]:.2f}" if on_left else f"{ranks[name]:.2f}  {label}"
        ax.text(
            end + (-0.03 if on_left else 0.03) * margin,
            y,
            text,
            ha="right" if on_left else "left",
            va="center",
            fontsize=8.5,
            color=_INK,
            fontweight="bold" if chosen or ranks[name] == ranks[order[0]] else "normal",
        )
    for low, high, level in bars:
        y = 0.3 + 0.22 * level
        ax.plot([low - 0.03, high + 0.03], [y, y], color=_INK, lw=4, solid_capstyle="butt")
    if test == "bonferroni-dunn":
        centre = ranks[str(comparison.control)]
        ax.axvspan(max(centre - cd, 1), min(centre + cd, k), color=_PALE, alpha=0.7, lw=0, zorder=0)


def _ruler(ax: Axes, length: float, start: float, text: str) -> None:
    """Draw a length above the axis of ranks."""
    ax.plot([start, start + length], [-0.85, -0.85], color=_INK, lw=1.1)
    ax.vlines([start, start + length], -0.95, -0.75, color=_INK, lw=1.1)
    ax.text(start + length / 2, -0.95, text, ha="center", va="bottom", fontsize=8, color=_INK)


def _stack(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """Give each span the lowest level on which it overlaps no earlier one."""
    ends: list[float] = []
    stacked = []
    for low, high in spans:
        level = next((i for i, end in enumerate(ends) if end + 0.1 < low), len(ends))
        ends[level : level + 1] = [high]
        stacked.append((low, high, level))
    return stacked


def heatmap(
    matrix: np.ndarray,
    ax: Axes,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    limit: float | None = None,
    title: str = "",
    signed: bool | None = None,
) -> Any:
    """Draw a matrix so that it prints in grey: brightness grows with the value.

    Parameters
    ----------
    matrix : ndarray of shape (r, c)
        Values; NaN is left white.
    ax : matplotlib Axes
        Where to draw.
    rows, columns : sequence of str
        Names; written when there are at most 24 of them, else numbered.
    limit : float, optional
        Largest absolute value of the colour scale, so that several matrices can share one; default is the
        matrix's own.
    title : str
        Written above.
    signed : bool, optional
        Draw from -limit to limit instead of from 0 to limit; default is whether an entry is negative.

    Returns
    -------
    matplotlib AxesImage
        For a colour bar.
    """
    values = np.asarray(matrix, dtype=float)
    top = limit if limit is not None else float(np.nanmax(np.abs(values), initial=0.0))
    signed = bool((values < 0).any()) if signed is None else signed
    image = ax.imshow(
        values,
        cmap="cividis" if signed else "Greys",
        vmin=-top if signed else 0.0,
        vmax=top or 1.0,
        aspect="auto" if values.shape[0] != values.shape[1] else "equal",
        interpolation="none",
    )
    ax.set_title(title, fontsize=9, color=_INK)
    for axis, names, size in ((ax.yaxis, rows, values.shape[0]), (ax.xaxis, columns, values.shape[1])):
        if len(names) == size <= 24:
            axis.set_ticks(range(size), [name if len(name) <= 18 else name[:17] + "…" for name in names])
    ax.tick_params(labelsize=7, length=0, colors=_SOFT)
    if len(columns) == values.shape[1] <= 24:
        ax.tick_params(axis="x", rotation=90)
    for spine in ax.spines.values():
        spine.set(color=_PALE)
    return image


def convergence(
    paths: Mapping[str, np.ndarray],
    ax: Axes,
    optimum: Mapping[str, float] | None = None,
    title: str = "",
) -> None:
    """Draw how far an objective is from its optimum, F(W_t) - F*, per iteration, both axes logarithmic.

    Parameters
    ----------
    paths : mapping of str to ndarray of shape (iterations,)
        Objective values by the name of the curve.
    ax : matplotlib Axes
        Where to draw.
    optimum : mapping, optional
        F* of each curve. Where it is not given, the smallest value of the path stands for it, so that the
        curve shows progress towards the last iterate and not optimality.
    title : str
        Written above.

    Notes
    -----
    Figure 6 of the MLWSE paper plots |loss_t - loss_(t-1)| of a loss that counts nonzeros; this does not.
    """
    for place, (name, path) in enumerate(paths.items()):
        values = np.asarray(path, dtype=float).ravel()
        gap = values - (optimum or {}).get(name, np.nanmin(values, initial=np.inf))
        shown = np.flatnonzero(gap > 0)
        ax.plot(
            shown + 1,
            gap[shown],
            label=name,
            color=_GREYS[place % len(_GREYS)],
            linestyle=_LINES[place % len(_LINES)],
            lw=1.4,
            marker=_MARKERS[place % len(_MARKERS)],
            markevery=0.15,
            ms=3.5,
        )
    ax.set(xscale="log", yscale="log", xlabel="iteration", ylabel="F − F*")
    ax.set_title(title, fontsize=9, color=_INK)
    ax.grid(True, color=_PALE, lw=0.5)
    ax.tick_params(labelsize=7, colors=_SOFT)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if paths:
        ax.legend(fontsize=7, frameon=False)


def dots(summary: Summary, ax: Axes, titles: Mapping[str, str] | None = None, label: str = "") -> None:
    """Draw the mean of each method on each dataset, one line per dataset, with its standard deviation as a bar.

    Parameters
    ----------
    summary : Summary
        One metric over splits.
    ax : matplotlib Axes
        Where to draw; about 0.3 inch of height per dataset.
    titles : mapping, optional
        Printed names of methods.
    label : str
        Name of the axis of values.
    """
    datasets, methods = list(summary.mean.index), list(summary.mean.columns)
    for place, method in enumerate(methods):
        shift = 0.5 * ((place + 0.5) / len(methods) - 0.5)  # so that equal means stay visible side by side
        ax.errorbar(
            summary.mean[method],
            np.arange(len(datasets)) + shift,
            xerr=summary.std[method].fillna(0),
            fmt=_MARKERS[place % len(_MARKERS)],
            ms=4.5,
            lw=0.8,
            color=_GREYS[place % len(_GREYS)],
            mfc=_GREYS[place % len(_GREYS)] if place % 2 == 0 else "white",
            label=(titles or {}).get(method, method),
        )
    ax.set_yticks(range(len(datasets)), datasets)
    ax.set(ylim=(len(datasets) - 0.5, -0.5), xlabel=label)
    ax.grid(True, axis="x", color=_PALE, lw=0.5)
    ax.hlines(
        np.arange(len(datasets) - 1) + 0.5, 0, 1, color=_PALE, lw=0.5, transform=ax.get_yaxis_transform()
    )
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    if methods:
        ax.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=min(5, len(methods)), fontsize=7.5, frameon=False
        )
