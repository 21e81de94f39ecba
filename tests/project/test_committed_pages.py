"""Pages are built from the committed results, and what is committed of them is what its command writes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest

from multilab.arena.committed_tables import results_table
from multilab.arena.portfolio import chosen_members, stack_study
from multilab.cli import main
from multilab.core import changed_files, read_content, read_json
from multilab.experiments.study import load_study
from multilab.experiments.study_results import write_comparisons
from multilab.reports import write_readme
from multilab.reports.all_pages import overview
from multilab.reports.arena import rank as arena
from multilab.reports.arena.page import build_arena_page
from multilab.reports.arena.rank import summarise_arena
from multilab.statistics.result_files import SCORES, read_scores

pytestmark = pytest.mark.slow

for _module in ("jinja2", "matplotlib", "pyarrow"):
    pytest.importorskip(_module)

CHECKOUT = Path(__file__).resolve().parents[2]
FILES = ("README.md", "docs/arena-results.md", "reports/arena/summary.json")
OF_COMPARISONS = ("metrics.json", "statistics*.json.gz", "headline.*", "ranks.csv", "folds.csv")
LOCAL = ("quick", "compare")  # not committed, or only in part
STUDIES = sorted(path.parent.name for path in CHECKOUT.glob(f"reports/*/{SCORES}") if path.parent.name not in LOCAL)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the committed results without pages, and of the README without the rows of its table."""
    shutil.copytree(CHECKOUT / "reports", tmp_path / "reports", ignore=shutil.ignore_patterns("*.html", *LOCAL))
    (tmp_path / "docs").mkdir()
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    emptied = re.sub(r"(<!-- table (\S+) -->\n).*?(<!-- end \2 -->)", r"\1\3", text, flags=re.DOTALL)
    assert emptied != text
    (tmp_path / "README.md").write_text(emptied, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def differences(root: Path, names: Iterable[str]) -> list[str]:
    """Return the committed files that are not those of a folder."""
    return [
        f"{name}: `make pages` writes another one"
        for name in sorted(names)
        if not (root / name).is_file() or (root / name).read_bytes() != (CHECKOUT / name).read_bytes()
    ]


def pages(root: Path) -> set[str]:
    """Return the pages in the folders of studies."""
    return {path.relative_to(root / "reports").as_posix() for path in root.glob("reports/**/*.html")}


def test_the_page_of_the_arena(copy: Path) -> None:
    (copy / "reports" / "arena" / "summary.json").unlink()
    build_arena_page(Path("reports/arena"))
    summarise_arena()
    assert pages(copy) == {"arena/index.html"}
    assert differences(copy, {"reports/arena/summary.json", "docs/arena-results.md"}) == []


def test_the_readme_and_the_page_over_all_studies(copy: Path) -> None:
    overview(Path("reports"))
    assert pages(copy) == {"index.html"}
    assert differences(copy, {"README.md"}) == []


def test_another_result_is_noticed(copy: Path) -> None:
    """The comparison of this file sees a number that differs."""
    path = copy / "reports" / "arena" / "summary.json"
    path.write_text(path.read_text().replace('"anchor": "br_logistic"', '"anchor": "br"'))
    write_readme(Path("README.md"), Path("reports"))
    assert [line.partition(":")[0] for line in differences(copy, {"README.md"})] == ["README.md"]


@pytest.mark.slow
def test_one_command_writes_every_page(copy: Path) -> None:
    (copy / "reports" / "arena" / "summary.json").unlink()
    assert main(["study", "report", "--all"]) == 0
    of_studies = {f"{name}/index.html" for name in STUDIES if load_study(name).page == "study"}
    assert pages(copy) == {"index.html", "arena/index.html"} | of_studies
    assert differences(copy, FILES) == []


@pytest.mark.slow
def test_the_leaderboard_follows_from_the_tables(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but Elo, whose package is an extra and whose 1,000 bootstraps take long."""
    monkeypatch.setattr(arena, "_rating", lambda required=False: None)
    assert main(["arena", "rank"]) == 0
    written, committed = (read_json(root / "reports" / "arena" / "leaderboard.json.gz") for root in (copy, CHECKOUT))
    for pool in committed["pools"]:
        pool.pop("pareto", None)
        for board in pool["boards"].values():
            for name in ("elo", "elo_low", "elo_high"):
                board.pop(name, None)
    assert list(written) == list(committed)
    assert [key for key in committed if written[key] != committed[key]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_means_comparisons_and_data_of_plots_follow_from_the_scores(copy: Path, name: str) -> None:
    folder = copy / "reports" / name
    for pattern in OF_COMPARISONS:
        for path in folder.glob(pattern):
            path.unlink()
    write_comparisons(load_study(name), read_scores(folder))
    committed = CHECKOUT / "reports" / name
    names = {path.name for pattern in OF_COMPARISONS for path in committed.glob(pattern)}
    assert {path.name for pattern in OF_COMPARISONS for path in folder.glob(pattern)} == names
    assert [each for each in sorted(names) if read_content(folder / each) != read_content(committed / each)] == []


def test_the_table_of_all_results_follows_from_the_tables_of_the_studies() -> None:
    table = pd.read_parquet(CHECKOUT / "reports" / "arena" / "results.parquet")
    pd.testing.assert_frame_equal(table, results_table(), check_exact=True)
    assert not table.duplicated(["set", "split", "method", "metric"]).any()


@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_results_are_those_of_their_checksums(name: str) -> None:
    assert changed_files(CHECKOUT / "reports" / name) == []


def test_the_study_of_the_stacks_is_what_portfolio_writes() -> None:
    path = CHECKOUT / "conf" / "study" / "arena-stacks.yaml"
    assert path.read_text(encoding="utf-8") == stack_study(load_study("arena"), chosen_members(path))


def test_the_templates_of_the_plots_are_those_of_the_package() -> None:
    import multilab.experiments

    for path in (CHECKOUT / ".dvc" / "plots").glob("*.json"):
        source = Path(multilab.experiments.__file__).parent / "templates" / path.name
        assert path.read_text() == source.read_text(), path.name
