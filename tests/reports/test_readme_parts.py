"""The headline table of a study."""

import re

import pytest

from helpers.report_files import SETS

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import ReportError, headline_markdown


def test_markdown_table(fake):
    lines = headline_markdown(fake).splitlines()
    assert lines[0] == "| Hamming loss ↓ | BR | ML-kNN | MLWSE-L1 | MLWSE-L21 | ML-KELM |"
    assert lines[1] == "|:---|---:|---:|---:|---:|---:|"
    assert len(lines) == 2 + len(SETS) + 1
    for line in lines[2:-1]:
        assert line.count("**") == 2
        assert re.search(r"\*\*0\.\d{4}\*\* ± 0\.\d{4} ", line)
    assert "Coverage" in headline_markdown(fake, "coverage")
    with pytest.raises(ReportError, match="no metric 'speed'"):
        headline_markdown(fake, "speed")
