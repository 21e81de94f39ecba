"""Randomly damaged files: each is a valid data set or a `DatasetError` of one line, and nothing else ever happens.

500 files in every run, 52,000 with ``-m nightly``. They are read in a separate process, so that a crash of the
interpreter, a hang or a huge allocation fails the test. A failure prints kind and number of the file: the file is
``mutant(kind, number, seeds()[kind][1])``.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from helpers.readers_mutations import mutant, seeds
from helpers.readers_samples import DENSE
from helpers.readers_worker import run_jobs

pytest.importorskip("openpyxl")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and peak memory are Linux's")


TABLES = ["csv", "csv quoted", "tsv", "parquet", "svmlight", "xc"]
PEOPLE = ["json", "json lines", "tags", "items", "utf-16", "excel"]


def read_mutants(first: int, count: int, folder: Path, kinds: list[str] | None = None) -> Counter[tuple[str, str]]:
    """Read ``count`` files, numbered from ``first`` within each kind, and return how often each kind ended how."""
    samples = seeds()
    kinds = kinds or list(samples)
    arff = folder / "complete.arff"
    arff.write_text(DENSE, "utf-8")
    names, jobs = [], []
    for i in range(count):
        kind, number = kinds[i % len(kinds)], first + i // len(kinds)
        name, content, options = samples[kind]
        path = folder / f"{kind.replace(' ', '-')}-{number}-{name}"
        path.write_bytes(mutant(kind, number, content))
        job = {"path": str(path), "options": options}
        if kind == "xml":
            job = {"path": str(arff), "options": {"labels_xml": str(path)}}
        names.append((kind, number))
        jobs.append(job)
    results = run_jobs(jobs, folder)
    bad = [(name, r) for name, r in zip(names, results, strict=True) if r["outcome"] not in ("ok", "refused")]
    large = [(name, r) for name, r in zip(names, results, strict=True) if r["peak_mb"] > 1024]
    counts = Counter((kind, r["outcome"]) for (kind, _), r in zip(names, results, strict=True))
    print(*sorted(counts.items()), f"large: {large}", sep="\n")
    assert not bad, f"{len(bad)} of {count}: {bad[:20]}"
    assert not large, large[:20]
    return counts


def test_samples_are_read(tmp_path):
    """Without a change, every file is a valid data set: the fuzz test begins at sound files."""
    arff = tmp_path / "complete.arff"
    arff.write_text(DENSE, "utf-8")
    jobs = []
    for kind, (name, content, options) in seeds().items():
        path = tmp_path / f"{kind.replace(' ', '-')}-{name}"
        path.write_bytes(content)
        xml = {"path": str(arff), "options": {"labels_xml": str(path)}}
        jobs.append(xml if kind == "xml" else {"path": str(path), "options": options})
    assert [r["outcome"] for r in run_jobs(jobs, tmp_path)] == ["ok"] * len(jobs)


def test_a_dead_worker_is_noticed(tmp_path):
    """A worker that dies is reported for the file that it died of, and the next files are still read."""
    (tmp_path / "a.csv").write_text("x,l\n1,1\n", "utf-8")
    good = {"path": str(tmp_path / "a.csv"), "options": {"labels_last": 1}}
    results = run_jobs([good, {"kill": True}, good], tmp_path)
    assert [r["outcome"] for r in results] == ["ok", "died", "ok"]


def test_damaged_files(tmp_path):
    counts = read_mutants(0, 500, tmp_path)
    assert {outcome for _, outcome in counts} == {"ok", "refused"}


@pytest.mark.nightly
def test_many_damaged_files(tmp_path):
    counts = read_mutants(1_000_000, 12_000, tmp_path)
    assert {kind for kind, outcome in counts if outcome == "refused"} == set(seeds())


@pytest.mark.nightly
def test_many_damaged_tables(tmp_path):
    counts = read_mutants(2_000_000, 20_000, tmp_path, TABLES)
    assert set(counts) == {(kind, outcome) for kind in TABLES for outcome in ("ok", "refused")}


@pytest.mark.nightly
def test_many_damaged_tables_of_people(tmp_path):
    pytest.importorskip("openpyxl")
    counts = read_mutants(3_000_000, 20_000, tmp_path, PEOPLE)
    assert {kind for kind, outcome in counts if outcome == "refused"} == set(PEOPLE)
