"""Made-up studies that the tests of reports share."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from helpers.html_page import Page
from helpers.report_files import DIRECTIONS, SETS, TITLES, random_means, write_fake_study, write_means
from multilab.reports import build_report


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    return write_fake_study(tmp_path_factory.mktemp("reports") / "fake", control="mlwse_l21")


@pytest.fixture(scope="session")
def page(fake):
    return Page(build_report(fake).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    methods = {m: TITLES[m] for m in ("br", "mlknn", "mlwse_l21")}
    metrics = {m: DIRECTIONS[m] for m in ("hamming_loss", "average_precision")}
    return write_fake_study(
        tmp_path_factory.mktemp("reports") / "small", SETS[1:], methods, metrics, folds=3, learned=0
    )


@pytest.fixture
def copy(small, tmp_path):
    return shutil.copytree(small, tmp_path / "small")


@pytest.fixture
def many(tmp_path) -> tuple[Path, pd.DataFrame]:
    """A study of 25 methods, and its means."""
    means = random_means(25)
    return write_means(tmp_path / "many", means), means
