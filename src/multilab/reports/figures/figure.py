"""Figure of a page: image, alternative text, caption and heading."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from multilab.reports.errors import ReportError
from multilab.reports.figures.style import svg_uri
from multilab.statistics.result_files import read_table, table_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from multilab.reports.data import ReportData


@dataclass(frozen=True)
class Figure:
    """One figure, ready for the page.

    Attributes
    ----------
    image : str
        ``data:`` address of the image.
    alt : str
        Text in place of the image.
    caption : str
        Text below the image.
    width : int
        Pixels.
    title : str
        Heading; successive figures of equal title share one.
    data : str
        Name of the file of the study that holds the numbers; empty if they are in no file of their own.
    """

    image: str
    alt: str
    caption: str
    width: int
    title: str = ""
    data: str = ""

    @classmethod
    def of(cls, canvas: Canvas, alt: str, caption: str, scale: float = 100.0) -> Figure:
        """Return the figure of a matplotlib canvas.

        Parameters
        ----------
        canvas : matplotlib Figure
            What is drawn.
        alt, caption : str
            Texts of the figure.
        scale : float
            Pixels per inch on the page.
        """
        return cls(svg_uri(canvas), alt, caption, round(scale * canvas.get_figwidth()))


@dataclass(frozen=True)
class FigureSource:
    """Figures drawn from one table of a study: their heading, the table's name, and the function that draws them."""

    title: str
    table: str
    draw: Callable[[ReportData, pd.DataFrame], Figure | Iterable[Figure]]


def draw_figures(report: ReportData, sources: Iterable[FigureSource]) -> list[Figure]:
    """Return the figures of the tables that the study has.

    Raises
    ------
    ReportError
        If a table cannot be read or lacks a column.
    """
    figures: list[Figure] = []
    for source in sources:
        path = report.folder / table_file(source.table)
        if not path.is_file():
            continue
        try:
            drawn = source.draw(report, read_table(path))
            listed = [drawn] if isinstance(drawn, Figure) else list(drawn)
        except (KeyError, ValueError) as error:
            raise ReportError(f"{path} cannot be drawn: {' '.join(str(error).split())}") from error
        figures += [replace(figure, title=source.title, data=path.name) for figure in listed]
    return figures
