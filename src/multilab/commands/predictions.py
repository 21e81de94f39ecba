"""The commands `multilab predict` and `multilab explain`."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from multilab.commands.progress import ProgressBar
from multilab.core import write_atomically
from multilab.core.messages import printable
from multilab.core.text import excerpt
from multilab.deployment import load_model
from multilab.deployment.explaining import coefficient_table, permutation_table
from multilab.deployment.model_limits import prediction_warnings


def predict(model: str, rows: str, output: str | None, tracking_uri: str | None = None) -> int:
    """Predict the rows of a file and write decisions and probabilities as CSV.

    Parameters
    ----------
    model : str
        Folder or MLflow address.
    rows : str
        CSV, TSV or Parquet file with the columns of the training file.
    output : str or None
        CSV file to write; None: standard output.
    tracking_uri : str, optional
    """
    saved = load_model(model, tracking_uri)
    encoded = saved.encode(saved.read(rows))
    for note in encoded.notes():
        print(printable(f"note: {note}"), file=sys.stderr)
    scores, decisions = saved.fitted.predict_with_scores(encoded.X)
    for warning in prediction_warnings(saved.metadata, decisions):
        print(printable(f"warning: {warning}"), file=sys.stderr)
    predicted = saved.frame_of(scores, decisions)
    text = predicted.to_csv(index=False, lineterminator="\n")
    if output is None:
        print(text, end="")
        return 0
    write_atomically(Path(output), text)
    print(f"{output}: {len(predicted)} rows, {len(saved.label_names)} labels")
    return 0


_SHOWN = 20


def explain(
    model: str,
    rows: str,
    label: str | None,
    *,
    metric: str | None = None,
    n_repeats: int = 10,
    output: str | None = None,
    tracking_uri: str | None = None,
) -> int:
    """Print the importance of each raw column for a label, and its coefficients where the model has them.

    Parameters
    ----------
    model, rows : str
        Folder or MLflow address; file of rows.
    label : str or None
        None: all labels together.
    metric : str, optional
    n_repeats : int
        Permutations per column.
    output : str, optional
        CSV file of the importances.
    tracking_uri : str, optional
    """
    saved = load_model(model, tracking_uri)
    frame = saved.read(rows)
    coefficients = coefficient_table(saved, label) if label is not None else None
    wanted = saved.label_names if label is None else [label]
    if coefficients is not None and not set(wanted) <= set(frame.columns):
        print(f"{rows} has no column {label!r}: no permutation importance", file=sys.stderr)
        table = coefficients
    else:
        bar = ProgressBar("permutation importance")
        table = permutation_table(saved, frame, label, metric=metric, n_repeats=n_repeats, progress=bar)
        what = f"label {label!r}" if label is not None else "all labels"
        about = table.attrs
        print(f"{what}: {about['metric']} {about['value']:.4f} on {len(frame)} rows; loss when a column is permuted")
        _print_table(table)
    if coefficients is not None:
        print(f"{coefficients.columns[1]}s of the model, on scaled features:")
        _print_table(coefficients)
    if output is not None:
        write_atomically(Path(output), table.to_csv(index=False, lineterminator="\n"))
        print(f"{output}: {len(table)} rows")
    return 0


def _print_table(table: pd.DataFrame) -> None:
    """Print the first rows of a table of a name and numbers."""
    shown = table.head(_SHOWN)
    names = [printable(excerpt(str(name))) for name in shown.iloc[:, 0]]
    width = max(map(len, names), default=0)
    for name, values in zip(names, shown.iloc[:, 1:].itertuples(index=False), strict=True):
        print(f"  {name:<{width}}  " + " ± ".join(f"{value:.4f}" for value in values))
    if len(table) > _SHOWN:
        print(f"  and {len(table) - _SHOWN} more")
