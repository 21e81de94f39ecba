"""The commands `multilab predict` and `multilab explain`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from multilab.commands.progress import ProgressBar
from multilab.core import MultilabError, write_atomically
from multilab.core.files import refuse_overwriting
from multilab.core.messages import printable
from multilab.core.text import excerpt
from multilab.deployment import load_model
from multilab.deployment.explaining import coefficient_table, permutation_table
from multilab.deployment.model_limits import prediction_warnings

_WRITERS: dict[str, Callable[[pd.DataFrame], str | bytes]] = {
    ".csv": lambda table: table.to_csv(index=False, lineterminator="\n"),
    ".tsv": lambda table: table.to_csv(index=False, lineterminator="\n", sep="\t"),
    ".json": lambda table: table.to_json(orient="records", double_precision=15) + "\n",
    ".jsonl": lambda table: table.to_json(orient="records", lines=True, double_precision=15),
    ".parquet": lambda table: table.to_parquet(index=False),
}
"""Formats of an output file by its extension; a name without one is CSV."""


def check_output(output: str | None, rows: str, model: str) -> None:
    """Refuse an output file in a format that is not written, and one that this command reads.

    Raises
    ------
    MultilabError
    """
    if output is None:
        return
    extension = Path(output).suffix.lower()
    if extension and extension not in _WRITERS:
        raise MultilabError(f"{output}: tables are written as {', '.join(_WRITERS)}, not as {extension}")
    refuse_overwriting(output, rows, *Path(model).rglob("*"))


def save_table(table: pd.DataFrame, output: str) -> None:
    """Write a table in the format that the extension of the file names."""
    write_atomically(output, _WRITERS[Path(output).suffix.lower() or ".csv"](table))


def predict(model: str, rows: str, output: str | None, tracking_uri: str | None = None) -> int:
    """Predict the rows of a file and write decisions and probabilities.

    Parameters
    ----------
    model : str
        Folder or MLflow address.
    rows : str
        CSV, TSV or Parquet file with the columns of the training file.
    output : str or None
        File to write, by its extension ``.csv``, ``.tsv``, ``.json``, ``.jsonl`` or ``.parquet``; None: CSV to standard
        output.
    tracking_uri : str, optional
    """
    check_output(output, rows, model)
    saved = load_model(model, tracking_uri)
    encoded = saved.encode(saved.read(rows))
    for note in encoded.notes():
        print(printable(f"note: {note}"), file=sys.stderr)
    scores, decisions = saved.fitted.predict_with_scores(encoded.X)
    for warning in prediction_warnings(saved.metadata, decisions):
        print(printable(f"warning: {warning}"), file=sys.stderr)
    predicted = saved.frame_of(scores, decisions)
    if output is None:
        print(_WRITERS[".csv"](predicted), end="")
        return 0
    save_table(predicted, output)
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
        File of the importances, in the formats of `predict`.
    tracking_uri : str, optional
    """
    check_output(output, rows, model)
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
        left_out = len(frame) - about["rows"]
        unobserved = f" ({left_out} others have no label)" if left_out else ""
        value = f"{about['metric']} {about['value']:.4f} on {about['rows']} rows{unobserved}"
        print(f"{what}: {value}; loss when a column is permuted")
        _print_table(table)
    if coefficients is not None:
        print(f"{coefficients.columns[1]}s of the model, on scaled features:")
        _print_table(coefficients)
    if output is not None:
        save_table(table, output)
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
