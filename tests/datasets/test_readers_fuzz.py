"""Randomly damaged files: each is a valid data set or a `DatasetError` of one line, and nothing else ever happens.

590 files in every run, 61,000 with ``-m nightly``. They are read in a separate process, so that a crash of the
interpreter, a hang, a huge allocation or a warning of a library fails the test. What is read, and another library reads
as well, has the same values. A failure prints kind and number of the file: the file is
``mutant(kind, number, seeds()[kind][1])``.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers.readers_mutations import mutant, seeds
from helpers.readers_oracles import differs
from helpers.readers_samples import DENSE
from helpers.readers_worker import run_jobs

pytest.importorskip("openpyxl")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and peak memory are Linux's")


TABLES = ["csv", "csv quoted", "semicolons", "tsv", "parquet", "feather", "svmlight", "xc"]
TEXTS = ["csv", "csv quoted", "tsv", "semicolons", "decimal commas", "no header", "lines to skip", "cp1252", "tags"]
PEOPLE = ["json", "json lines", "tags", "items", "utf-16", "excel"]


def read_mutants(
    first: int, count: int, folder: Path, kinds: list[str] | None = None, **further: bool
) -> Counter[tuple[str, str]]:
    """Read ``count`` files, numbered from ``first`` within each kind, and return how often each kind ended how.

    ``further`` are entries of all jobs.
    """
    samples = seeds()
    kinds = kinds or list(samples)
    names, jobs = [], []
    for i in range(count):
        kind, number = kinds[i % len(kinds)], first + i // len(kinds)
        names.append((kind, number))
        jobs.append(further | job_of(kind, number, mutant(kind, number, samples[kind][1]), samples, folder))
    results = run_jobs(jobs, folder)
    bad = [(name, r) for name, r in zip(names, results, strict=True) if r["outcome"] not in ("ok", "refused")]
    large = [(name, r) for name, r in zip(names, results, strict=True) if r["peak_mb"] > 1024]
    counts = Counter((kind, r["outcome"]) for (kind, _), r in zip(names, results, strict=True))
    compared = [(name, job) for name, job, r in zip(names, jobs, results, strict=True) if r["outcome"] == "ok"]
    others = run_jobs([{**job, "compare": True} for _, job in compared], folder)
    counts += Counter((kind, f"compared: {r['outcome']}") for ((kind, _), _), r in zip(compared, others, strict=True))
    bad += [(name, r) for (name, _), r in zip(compared, others, strict=True) if r["outcome"] == "escape"]
    print(*sorted(counts.items()), f"large: {large}", sep="\n")
    assert not bad, f"{len(bad)} of {count}: {bad[:20]}"
    assert not large, large[:20]
    return counts


def job_of(kind: str, number: int, content: bytes, samples: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write a file, and return the job that reads it."""
    name, _, options = samples[kind]
    path = folder / f"{kind.replace(' ', '-')}-{number}-{name}"
    path.write_bytes(content)
    if kind != "xml":
        return {"path": str(path), "options": options}
    arff = folder / "complete.arff"
    arff.write_text(DENSE, "utf-8")
    return {"path": str(arff), "options": {"labels_xml": str(path)}}


@pytest.mark.slow
def test_samples_are_read(tmp_path):
    """Without a change, every file is a valid data set: the fuzz test begins at sound files."""
    kinds = seeds()
    jobs = [job_of(kind, 0, content, kinds, tmp_path) for kind, (_, content, _) in kinds.items()]
    outcomes = dict(zip(kinds, (r["outcome"] for r in run_jobs(jobs, tmp_path)), strict=True))
    assert outcomes == {**dict.fromkeys(kinds, "ok"), "mat 4": "refused"}
    sound = {kind: job for kind, job in zip(kinds, jobs, strict=True) if outcomes[kind] == "ok"}
    compared = run_jobs([{**job, "compare": True} for job in sound.values()], tmp_path)
    assert [r["outcome"] for r in compared] == ["ok"] * len(sound), compared


def test_a_dead_worker_is_noticed(tmp_path):
    """A worker that dies is reported for the file that it died of, and the next files are still read."""
    (tmp_path / "a.csv").write_text("x,l\n1,1\n", "utf-8")
    good = {"path": str(tmp_path / "a.csv"), "options": {"labels_last": 1}}
    results = run_jobs([good, {"kill": True}, good], tmp_path)
    assert [r["outcome"] for r in results] == ["ok", "died", "ok"]


def test_other_values_are_noticed():
    table = ["x", "", "town", ""], [["1.50", "2", " Köln", ""], ["?", "nan", "NA", ""]]
    frame = pd.DataFrame({"x": [1.5, None], "c2": [2, None], "town": ["Köln", None]})
    named = ["x", "c2", "town", ""], table[1]
    assert differs(frame, named) == ""
    assert differs(frame, table)  # a column without a name is among the others
    assert differs(frame.assign(x=[1.5, 0]), named)
    assert differs(frame.assign(x=[1.25, None]), named)
    assert differs(frame.assign(town=["Koln", None]), named)
    assert differs(frame.assign(town=["Köln", "NA"]), named)
    assert differs(frame[["x", "town"]], named)
    assert differs(frame.head(1), named)


def test_damaged_files(tmp_path):
    counts = read_mutants(0, 500, tmp_path)
    assert {outcome for _, outcome in counts} >= {"ok", "refused", "compared: ok"}


@pytest.mark.slow
def test_damaged_tables_in_small_chunks(tmp_path):
    counts = read_mutants(4_000_000, 90, tmp_path, TEXTS, small_chunks=True)
    assert {outcome for _, outcome in counts} >= {"ok", "refused", "compared: ok"}


@pytest.mark.nightly
def test_many_damaged_tables_in_small_chunks(tmp_path):
    counts = read_mutants(4_000_000, 9_000, tmp_path, TEXTS, small_chunks=True)
    assert set(counts) >= {(kind, outcome) for kind in TEXTS for outcome in ("ok", "refused", "compared: ok")}


@pytest.mark.nightly
def test_many_damaged_files(tmp_path):
    counts = read_mutants(1_000_000, 12_000, tmp_path)
    assert {kind for kind, outcome in counts if outcome == "refused"} == set(seeds())


@pytest.mark.nightly
def test_many_damaged_tables(tmp_path):
    counts = read_mutants(2_000_000, 20_000, tmp_path, TABLES)
    assert set(counts) >= {(kind, outcome) for kind in TABLES for outcome in ("ok", "refused", "compared: ok")}


@pytest.mark.nightly
def test_many_damaged_tables_of_people(tmp_path):
    pytest.importorskip("openpyxl")
    counts = read_mutants(3_000_000, 20_000, tmp_path, PEOPLE)
    assert {kind for kind, outcome in counts if outcome == "refused"} == set(PEOPLE)
