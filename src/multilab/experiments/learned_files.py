"""What a method learned, as files of its run in MLflow: the arrays, and a picture whose axes have names."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from multilab.cells.cell import Cell
from multilab.cells.fitting import estimator_of
from multilab.cells.learned import Axes, axes_of, read_learned
from multilab.cells.store import Store
from multilab.datasets import prepared_meta

__all__ = ["learned_files"]

_MOST_NAMES = 40  # on an axis: more would overlap


def learned_files(cell: Cell, store: Store) -> dict[str, bytes]:
    """Return the learned arrays of the first split, and a picture of those whose axes have names."""
    arrays = read_learned(store, cell.key)
    if not arrays:
        return {}
    buffer, content = io.BytesIO(), dict[str, Any](arrays)
    np.savez_compressed(buffer, **content)
    shown = {name: axes for name, axes in axes_of(estimator_of(cell.method)).items() if name in arrays}
    picture = {"learned.png": _learned_png(arrays, shown, _entries(cell))} if shown else {}
    return {"learned.npz": buffer.getvalue(), **picture}


def _entries(cell: Cell) -> dict[str, list[str]]:
    """Return the names of the entries of axes, by the name of the axis."""
    meta = prepared_meta(cell.split_ref.dataset) or {}
    labels = meta.get("label_names", [])
    bases = cell.method.base_scores or [name for name, _ in cell.method.params.get("estimators", [])]
    scores = [f"{base}: {label}" for base in bases for label in labels]
    return {"label": labels, "feature": meta.get("feature_names", []), "score": scores}


def _learned_png(
    arrays: Mapping[str, np.ndarray], shown: Mapping[str, Axes], entries: Mapping[str, list[str]]
) -> bytes:
    """Return one picture with a panel per array: matrices as colours, vectors as bars."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure, buffer = Figure(figsize=(6.5, 4.5 * len(shown)), layout="constrained"), io.BytesIO()
    panels = figure.subplots(len(shown), squeeze=False)[:, 0]
    for panel, (name, axes) in zip(panels, shown.items(), strict=True):
        array = arrays[name]
        panel.set(title=name, xlabel=axes[-1], ylabel=axes[0] if len(axes) > 1 else name.rpartition("__")[2].strip("_"))
        if len(axes) == 1:
            panel.bar(np.arange(len(array)), array)
            panel.yaxis.set_major_locator(MaxNLocator(integer=array.dtype.kind in "iu"))
        else:
            high = float(np.nanmax(np.abs(array), initial=0.0)) or 1.0
            colours: dict[str, Any] = {"cmap": "Blues", "vmin": 0.0}
            if np.nanmin(array, initial=0.0) < 0:
                colours = {"cmap": "RdBu_r", "vmin": -high}
            image = panel.imshow(array, vmax=high, aspect="auto", interpolation="nearest", **colours)
            figure.colorbar(image, ax=panel)
            _name_ticks(panel.yaxis, len(array), entries.get(axes[0], []))
        _name_ticks(panel.xaxis, array.shape[-1], entries.get(axes[-1], []))
        panel.tick_params(axis="x", rotation=90)
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()


def _name_ticks(axis: Any, size: int, names: Sequence[str]) -> None:
    """Label an axis with the names of its entries, or with whole numbers where there are none or too many."""
    from matplotlib.ticker import MaxNLocator

    if len(names) == size <= _MOST_NAMES:
        axis.set_ticks(range(size), [name[:30] for name in names], fontsize="small")
    else:
        axis.set_major_locator(MaxNLocator(integer=True))
