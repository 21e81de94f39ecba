"""The committed files of a study are the same whatever kernels the processor has; its packs are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from helpers.laboratory import Laboratory
from helpers.processors import has_avx512, skip_unless_available

pytestmark = pytest.mark.xdist_group("pipeline")

STATE = (".cells", ".dvc/cache", "data/prepared", "data/splits", "results", "reports", "mlflow.db", "dvc.lock")


REPORT = ("metrics.json", "headline.json", "headline.csv", "ranks.csv", "folds.csv")
COMMITTED = [f"reports/quick/{name}" for name in REPORT]


def run_pipeline(lab: Laboratory, core: str) -> list[bytes]:
    """Run the pipeline from an empty store on one type of kernels; return the tables that git tracks."""
    for name in STATE:
        path = lab.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    lab.run("dvc", "repro", "-q", OPENBLAS_CORETYPE=core, OPENBLAS_NUM_THREADS="1")
    return [(lab.root / name).read_bytes() for name in COMMITTED]


@pytest.mark.slow
def test_two_types_of_processors_write_the_same_tables(tmp_path: Path):
    other = "SkylakeX" if has_avx512() else "Sandybridge"
    for core in ("Haswell", other):
        skip_unless_available(core)
    lab = Laboratory(tmp_path)
    lab.study("quick", "digit-segments", "mlknn, mlkelm, relm, br, mlwse_l1")
    lab.run("multilab", "study", "new", "quick")
    first = run_pipeline(lab, "Haswell")
    scores = sorted((lab.root / ".cells").glob("*/arrays.npz"))
    digests = {path.parent.name: path.read_bytes() for path in scores}
    assert run_pipeline(lab, other) == first
    again = {path.parent.name: path.read_bytes() for path in (lab.root / ".cells").glob("*/arrays.npz")}
    assert again.keys() == digests.keys()
    assert again != digests, "the two types of kernels give the same bits, so that this test shows nothing"
