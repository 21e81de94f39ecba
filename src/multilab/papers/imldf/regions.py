"""Fig. 1 of the iMLDF paper on points in a plane: regions of interactions, how far inside, and which labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.datasets.synthetic import sample_scenario, scenario_threshold
from multilab.methods.forests.compact_forest import grow_forest, seed_at
from multilab.methods.forests.interactions import ABOVE, LayerPaths, Regions, Trees, chosen_regions, layer_sets, ranked

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "regions"
LABELS = ("high", "right", "both")
_GRID = 41


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return points, regions, label shares and, for the first region, the confidence over the plane.

    The points are those of a scenario, with x and y as the two features. Their labels are ``high`` (y above the
    scenario's threshold), ``right`` (x > 0), both with noise, and ``both``. The regions are found as in a layer of
    iMLDF, by the rule ``settings.rule``, and the first ``settings.regions`` are listed.
    """
    points, Y = plane(unit.generator or {})
    paths = LayerPaths.of([grow_forest("random", points, Y, unit.seed, n_estimators=100)[0]])
    trees = Trees(20, 5, unit.settings.get("rule", "relax"))
    sets = [layer_sets(paths, points, trees, seed_at(unit.seed, index)) for index in range(10)]
    regions = chosen_regions(ranked(sets, np.random.default_rng(unit.seed)), points, Y, unit.settings["regions"])
    low, high = points.min(axis=0), points.max(axis=0)
    rows: list[tuple[str, int, str, float, float, float, float]] = []
    for (x, y), labels in zip(points.tolist(), Y, strict=True):
        named = "+".join(name for name, has in zip(LABELS, labels, strict=True) if has)
        rows.append(("point", 0, named or "no label", x, y, 0.0, 0.0))
    for k in range(len(regions)):
        (left, bottom), (right, top) = _corners(regions, k, low, high)
        rows.append(("box", k, "", left, bottom, right, top))
        rows += [("share", k, name, float(p), 0.0, 0.0, 0.0) for name, p in zip(LABELS, regions.labels[k], strict=True)]
    axes = [np.linspace(a, b, _GRID) for a, b in zip(low, high, strict=True)]
    lattice = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2).astype(np.float32)
    depth = regions.inside(lattice)[1][:, 0]
    rows += [("confidence", 0, "", x, y, float(c), 0.0) for (x, y), c in zip(lattice.tolist(), depth, strict=True)]
    names = ("kind", "region", "label", "x", "y", "x2", "y2")
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return table | {name: np.round(table[name], 5).tolist() for name in names[3:]}


def plane(generator: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the points, shape (n, 2), and their labels, shape (n, 3)."""
    made = {name: value for name, value in generator.items() if name != "name"}
    sample = sample_scenario(**made)
    noise = np.random.default_rng(made["seed"]).normal(size=(2, len(sample.X)))
    high = sample.y_real + noise[0] > scenario_threshold(made["k"], made.get("threshold", "median"))
    right = sample.X[:, 0] + noise[1] > 0
    points = np.column_stack([sample.X[:, 0], sample.y_real]).astype(np.float32)
    return points, np.column_stack([high, right, high & right]).astype(np.uint8)


def _corners(regions: Regions, k: int, low: np.ndarray, high: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the corners of a region within the range of the points."""
    first, last = low.astype(float), high.astype(float)
    for i in range(regions.starts[k], regions.starts[k + 1]):
        (first if regions.above[i] == ABOVE else last)[regions.columns[i]] = regions.thresholds[i]
    return first.tolist(), last.tolist()


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one repetition only."""
    return rows[["dataset", "kind", "region", "label", "x", "y", "x2", "y2"]]
