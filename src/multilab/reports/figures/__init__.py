"""Figures of a report: one style, diagrams on axes, and figures ready for the page."""

from multilab.reports.figures.diagrams import cd_diagram, heatmap
from multilab.reports.figures.figure import Figure, FigureSource, draw_figures

__all__ = ["Figure", "FigureSource", "cd_diagram", "draw_figures", "heatmap"]
