"""A separate process that reads files, so that a crash, a hang or a huge allocation of a reader is noticed.

``run_jobs`` starts this file as a program; it prints one line of JSON per job. A worker that dies is replaced, and
the job that it died of is reported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 3 * 2**30  # address space of the worker
CPU_SECONDS = 10  # of one job; a worker that needs more is ended
SECONDS_PER_JOB = 120  # only ends what would hang without computing


def run_jobs(jobs: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return per job its ``outcome`` (ok, refused, escape, died), ``message``, and ``peak_mb``.

    A job is ``{"path": ..., "options": {...}}`` for :func:`multilab.datasets.read` or
    ``{"card": folder, "name": ...}``; ``{"kill": True}`` ends the worker as a crash would. With ``"compare": True`` the
    values are compared with those of another library: the outcome is ok, escape, or unread if that cannot read it. With
    ``"small_chunks": True`` this and the following jobs read CSV files in chunks of two or three rows.
    """
    listing = folder / "jobs.json"
    listing.write_text(json.dumps(list(jobs)), "utf-8")
    results: list[dict[str, Any]] = []
    while len(results) < len(jobs):
        command = [sys.executable, __file__, str(listing), str(len(results))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        results += [json.loads(line) for line in done.stdout.splitlines()]
        if len(results) < len(jobs):
            detail = f"exit code {done.returncode}: {done.stderr[-300:]}"
            results.append({"outcome": "died", "message": detail, "peak_mb": 0.0})
    return results


def peak_mb(reset: bool = False) -> float:
    """Return the peak resident memory of this process since the last reset, or 0 where Linux does not say it."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    except OSError:
        return 0.0
    return int(line.split()[1]) / 1024


def check_message(error: Exception, job: dict[str, Any]) -> str:
    """Return what is wrong with the message of a refusal, or nothing."""
    text = str(error)
    folder = job["card"] if "card" in job else os.path.dirname(job["path"])
    if not text.startswith(folder):
        return f"names no file: {text}"
    if not text.isprintable():
        return f"not one printable line: {text!r}"
    return "" if len(text) - len(folder) < 1000 else f"{len(text)} characters: {text}"


def check_content(raw: Any) -> str:
    """Return what is wrong with the content of a file that was read, or nothing."""
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp

    from multilab.datasets.characteristics import describe

    n, q = raw.Y.shape
    if isinstance(raw.X, pd.DataFrame):
        values = raw.X.select_dtypes("number").to_numpy()
        texts = [list(cells.cat.categories) for _, cells in raw.X.items() if cells.dtype == "category"]
        right = {
            "type": values.dtype == np.float64 and values.shape[1] + len(texts) == raw.X.shape[1],
            "texts": all(isinstance(text, str) for of_column in texts for text in of_column),
            "order": all(of_column == sorted(set(of_column)) for of_column in texts),
            "missing": int(raw.X.isna().to_numpy().sum()) == raw.missing_values,
            "names": list(raw.X.columns) == raw.feature_names,
        }
    else:
        if sp.issparse(raw.X):
            raw.X.check_format(full_check=True)
        # a missing text is missing in each of its columns, and counted once
        repeated = [j for _, start, stop in raw.nominal for j in range(start + 1, stop)]
        counted = raw.X[:, np.delete(np.arange(raw.X.shape[1]), repeated)] if repeated else raw.X
        values, counted = (X.data if sp.issparse(X) else X for X in (raw.X, counted))
        right = {
            "type": raw.X.dtype == np.float64,
            "missing": int(np.isnan(counted).sum()) == raw.missing_values,
        }
    right |= {
        "shape": raw.X.shape == (n, len(raw.feature_names)) and q == len(raw.label_names) and min(n, q) > 0,
        "labels": raw.Y.dtype == np.uint8 and raw.Y.max() <= 1,
        "infinite": not np.isinf(values).any(),
        "digest": len(describe(raw)["digest"]) == 64,
    }
    return ", ".join(name for name, fine in right.items() if not fine)


def read_file(path: str, options: dict[str, Any]) -> str:
    """Read a file as a person does, and an ARFF file also as a card does; return what is wrong, or nothing."""
    from multilab.datasets import plan_reading, read
    from multilab.datasets.dataset import raw_source
    from multilab.datasets.options import reading_of
    from multilab.datasets.reading import raw_content

    options = dict(options)
    if options.pop("plan", False):  # as `multilab datasets add`
        options = plan_reading(path, **options).reader
    if wrong := check_content(raw_source(path, None, None, options)[0]):
        return wrong
    if ".arff" in path and (wrong := check_content(raw_content(path, reading_of(options), encode=True))):
        return f"as a matrix: {wrong}"
    data = read(path, **options)
    kinds = data.feature_names if data.kinds is None else list(data.kinds)
    return "" if kinds == data.feature_names else "kinds"


def do(job: dict[str, Any]) -> tuple[str, str]:
    """Return the outcome of one job and its message."""
    from multilab.datasets import DatasetError, DatasetWarning, card, csv_files

    if "kill" in job:
        os.abort()
    if "small_chunks" in job:
        assert csv_files._CHUNK_CELLS > csv_files._CHUNK_ROWS  # the names are those of today
        assert csv_files._BLOCK
        csv_files._CHUNK_CELLS, csv_files._CHUNK_ROWS, csv_files._BLOCK = 16, 2, 32
    if "compare" in job:
        from helpers.readers_oracles import other_values

        wrong = other_values(job["path"], job["options"])
        return ("unread", "") if wrong is None else ("escape", f"other values: {wrong}") if wrong else ("ok", "")
    try:
        if "card" in job:
            os.environ["MULTILAB_CARDS"] = job["card"]
            card(job["name"])
            return "ok", ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DatasetWarning)
            wrong = read_file(job["path"], job["options"])
        wrong = wrong or ", ".join(f"{each.category.__name__}: {each.message}" for each in caught)
        return ("escape", f"not a valid data set: {wrong}") if wrong else ("ok", "")
    except DatasetError as error:
        wrong = check_message(error, job)
        return ("escape", wrong) if wrong else ("refused", str(error))
    except Exception as error:
        return "escape", f"{type(error).__name__}: {str(error)[:300]}"


def main(listing: str, first: str) -> None:
    import resource
    import signal

    import multilab.datasets.dataset
    import multilab.datasets.parquet  # noqa: F401 (imported before the memory is measured)

    sys.path.insert(0, str(Path(__file__).parents[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)  # ends the process even inside compiled code
    for job in json.loads(Path(listing).read_text("utf-8"))[int(first) :]:
        signal.alarm(SECONDS_PER_JOB)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        peak_mb(reset=True)
        outcome, message = do(job)
        print(json.dumps({"outcome": outcome, "message": message, "peak_mb": peak_mb()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
