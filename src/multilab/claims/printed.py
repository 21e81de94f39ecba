"""The printed cells of the papers' tables, one CSV per paper."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from multilab.claims.errors import ClaimsError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["papers", "published"]


def papers() -> list[str]:
    """Return the papers whose printed cells are here."""
    folder = files("multilab.claims") / "published"
    return sorted(entry.name.removesuffix(".csv") for entry in folder.iterdir() if entry.name.endswith(".csv"))


def published(paper: str) -> pd.DataFrame:
    """Return the printed cells of a paper.

    Parameters
    ----------
    paper : str
        ``mlwse``, ``mlekelm``, ``lwmf``, ``imldf`` or ``lskmddm`` (whose tables were images: its means are empty).

    Returns
    -------
    DataFrame
        Columns table, dataset, method, metric, mean, std (NaN where the paper prints none), direction, and the words
        as printed (``printed_mean`` keeps trailing zeros, NaN where the paper has no number); ``dataset`` and
        ``method`` are the names of the cards and of the methods' YAMLs, but for those of ``aliases.yaml``.

    Raises
    ------
    ClaimsError
        If there is no such paper.
    """
    import pandas as pd

    if paper not in papers():
        raise ClaimsError(f"no printed cells of a paper {paper!r}; there are {', '.join(papers())}")
    with (files("multilab.claims") / "published" / f"{paper}.csv").open() as stream:
        cells = pd.read_csv(stream, dtype={"table": str, "mean": str})
    return cells.assign(printed_mean=cells["mean"], mean=pd.to_numeric(cells["mean"], errors="coerce"))
