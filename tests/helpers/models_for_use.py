"""A small own data set with text columns and holes, and a model fitted to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LABELS = ["tag_a", "tag_b", "tag_c"]
PROTOCOL = {"kfold": 3, "stratify": 1, "seed": 0}


def own_table(n_rows: int = 90, seed: int = 0) -> pd.DataFrame:
    """Return rows with numbers, truth values, text, holes, an identifier and three labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": range(1000, 1000 + n_rows),
            "age": rng.integers(18, 90, n_rows).astype(float),
            "town": rng.choice(["Bath", "Ely", "York"], n_rows),
            "income": rng.normal(30, 8, n_rows).round(2),
            "member": rng.choice(["true", "false"], n_rows),
        }
    )
    first = (table["age"] - 50) / 20 + (table["town"] == "York") + rng.normal(0, 0.3, n_rows)
    table["tag_a"] = (first > 0).astype(int)
    table["tag_b"] = (table["income"] + rng.normal(0, 2, n_rows) > 32).astype(int)
    table["tag_c"] = (rng.random(n_rows) < 0.3).astype(int)
    table.loc[rng.choice(n_rows, 8, replace=False), "age"] = np.nan
    table.loc[rng.choice(n_rows, 5, replace=False), "town"] = np.nan
    return table


def write_card(folder: Path, table: pd.DataFrame, name: str = "mine", **reader: Any) -> Path:
    """Write a table as CSV and its card; return the path of the CSV."""
    path = folder / f"{name}.csv"
    table.to_csv(path, index=False)
    options = {"format": "csv", "label_prefix": "tag_", "drop": ["id"]}
    lines = "".join(f"  {key}: {value}\n" for key, value in {**options, **reader}.items())
    card = f"title: {name}\nreader:\n{lines}files:\n  - {{role: full, path: {name}.csv}}\n"
    (folder / f"{name}.yaml").write_text(card, encoding="utf-8")
    return path


def fit_settings(method: str = "mlknn", **changes: Any) -> dict[str, Any]:
    """Return the settings of `multilab fit` on the own data set."""
    from multilab.cells.conf import read_settings

    settings = {
        "dataset": "mine",
        "method": method,
        "mapping": dict(read_settings("method", method)),
        "protocol": PROTOCOL,
        "seed": 0,
        "tune": None,
        "conventions": "default",
        "objective": None,
        "calibration": None,
    }
    return settings | changes


def model_of(settings: dict[str, Any]) -> Any:
    """Return the fitted model of settings: cells, then a fit on all rows."""
    from multilab.cells.execute import run_cells
    from multilab.cells.store import Store
    from multilab.models.champions import settings_cells
    from multilab.models.final_fit import evaluated, fitted_model

    cells, store = settings_cells(settings), Store()
    assert run_cells(cells, store, n_jobs=1) == {}
    return fitted_model(cells[0], evaluated(cells, store, "default"), store, settings=settings)


def register_at_once(
    folder: Path, logged: Any, where: dict[str, str], names: list[str], barrier: Any, queue: Any
) -> None:
    """Register the model of a folder under one name after the other, each at the moment of another process."""
    from multilab.cells.store import Store
    from multilab.models import load_model
    from multilab.models.champions import challenge

    model = load_model(folder)
    for name in names:
        barrier.wait(300)
        outcome = challenge(logged, model, name, where, Store())
        queue.put((name, logged.model_id, outcome.message))
