"""The command `multilab predict`."""

from __future__ import annotations

import sys
from pathlib import Path

from multilab.core import write_atomically
from multilab.core.messages import printable
from multilab.deployment import load_model


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
    predicted = saved.frame_of(*saved.fitted.predict_with_scores(encoded.X))
    text = predicted.to_csv(index=False, lineterminator="\n")
    if output is None:
        print(text, end="")
        return 0
    write_atomically(Path(output), text)
    print(f"{output}: {len(predicted)} rows, {len(saved.label_names)} labels")
    return 0
