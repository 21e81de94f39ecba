"""What MLflow shows of cells: shared by `publish` and by runs made by hand."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from multilab.experiments.cells import Cell
from multilab.experiments.results import MEASURED, dataset_facts, learned
from multilab.experiments.store import Store
from multilab.experiments.tracking import RunRecord

__all__ = ["run_record"]


def run_record(study: str, cells: list[Cell], scores: Any, store: Store, about: dict[str, Any]) -> RunRecord:
    """Return the run of one method on one dataset.

    Parameters
    ----------
    study : str
        Experiment name.
    cells : list of Cell
        Its cells, in split order.
    scores : DataFrame
        Rows (split, metric, value) of these cells.
    store : Store
    about : dict
        The environment.
    """
    first = cells[0]
    metrics = {m: list(g.sort_values("split")["value"]) for m, g in scores.groupby("metric", sort=False)}
    kept = [store.record(cell.key) for cell in cells]
    tags = {"commit": about["commit"], "seed": first.seed, "python": about["python"], "study": study}
    tuned = {f"tuned.{r['split']}": r["tuned"] for r in kept if "tuned" in r}
    return RunRecord(
        study=study,
        method=first.method.name,
        dataset=first.part.dataset,
        title=first.method.title,
        params={**first.method.identity(), "protocol": first.part.protocol, **tuned},
        metrics=metrics,
        measured={name: [float(r.get(name, np.nan)) for r in kept] for name in MEASURED},
        facts=dataset_facts(first.part.dataset),
        cells=[cell.key for cell in cells],
        tags={k: str(v) for k, v in tags.items()},
        artifacts=lambda: _artifacts(first, store),
    )


def _artifacts(cell: Cell, store: Store) -> dict[str, bytes]:
    """Return the learned arrays of the first split and a picture of each matrix among them."""
    arrays = learned(cell, store)
    if not arrays:
        return {}
    buffer = io.BytesIO()
    content: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **content)
    pictures = {f"{n}.png": _picture(a, n) for n, a in arrays.items() if a.ndim == 2 and min(a.shape) > 1}
    return {"learned.npz": buffer.getvalue(), **pictures}


def _picture(matrix: np.ndarray, name: str) -> bytes:
    from multilab.reports.drawing import new_figure, png_bytes, styled
    from multilab.reports.figures import heatmap

    with styled():
        figure = new_figure(5, 5)
        image = heatmap(matrix, figure.add_subplot(), title=name)
        figure.colorbar(image, shrink=0.8)
        return png_bytes(figure, dpi=110)
