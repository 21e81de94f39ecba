"""Every committed page, table and figure is what its command writes from the committed results."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import pytest

from multilab.arena.portfolio import chosen_members, stack_study
from multilab.cli import main
from multilab.core import changed_files
from multilab.experiments.study import load_study
from multilab.reports import write_readme
from multilab.reports.arena import rank as arena
from multilab.reports.arena.rank import summarise_arena
from multilab.reports.pages import README_STUDY, overview, write_pages
from multilab.reports.study import write_comparisons
from multilab.statistics.result_files import read_scores

for _module in ("jinja2", "matplotlib", "PIL"):
    pytest.importorskip(_module)

CHECKOUT = Path(__file__).resolve().parents[2]
FILES = ("README.md", "docs/arena-results.md", f"docs/figures/{README_STUDY}.png", "reports/arena/summary.json")
OF_COMPARISONS = ("metrics.json", "statistics*.json", "headline.*", "ranks.csv", "folds.csv")
LOCAL = ("quick", "compare")  # not committed, or only in part
STUDIES = sorted(path.parent.name for path in CHECKOUT.glob("reports/*/scores.csv") if path.parent.name not in LOCAL)
IMAGE = re.compile(r"data:image/(?:png|svg\+xml);base64,([\w+/=]+)")

pytestmark = pytest.mark.skipif(not STUDIES, reason="no committed results: an unpacked sdist")


def tracked() -> set[str]:
    """Return the committed files that a command writes."""
    if (CHECKOUT / ".git").exists():
        command = ["git", "ls-files", "reports"]
        listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.split("\n")
    else:
        listed = [path.relative_to(CHECKOUT).as_posix() for path in CHECKOUT.glob("reports/**/*.html")]
    return {name for name in listed if name.endswith(".html") and name.split("/")[1] not in LOCAL} | set(FILES)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the committed results without their pages, and of the README without the rows of its tables."""
    shutil.copytree(CHECKOUT / "reports", tmp_path / "reports", ignore=shutil.ignore_patterns("*.html", *LOCAL))
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    (tmp_path / "reports" / "arena" / "summary.json").unlink()
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    emptied = re.sub(r"(<!-- table (\S+) -->\n).*?(<!-- end \2 -->)", r"\1\3", text, flags=re.DOTALL)
    assert emptied != text
    (tmp_path / "README.md").write_text(emptied, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawn_as_committed() -> bool:
    """Return whether figures are drawn by the versions of the lock; others draw the same a little differently."""
    lock = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (CHECKOUT / "requirements.lock").read_text(), flags=re.MULTILINE))
    return all(version(name) == lock[name] for name in ("matplotlib", "pillow", "numpy", "contourpy"))


def pixels(png: bytes) -> str:
    """Return a digest of the pixels of an image: how they are compressed may depend on the processor."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return f"{image.size} {hashlib.sha256(image.convert('RGB').tobytes()).hexdigest()}"


def content(path: Path) -> str:
    """Return what a page, table or figure shows; figures only where they are drawn as the committed ones."""
    if path.suffix == ".png":
        return pixels(path.read_bytes()) if drawn_as_committed() else ""

    def image(match: re.Match[str]) -> str:
        if not drawn_as_committed():
            return "image"
        data = base64.b64decode(match[1])
        return data.decode() if "svg" in match[0][:20] else pixels(data)

    return IMAGE.sub(image, path.read_text(encoding="utf-8"))


def differences(root: Path, names: Iterable[str]) -> list[str]:
    """Return the committed files that are not those of a folder."""
    return [
        f"{name}: `make pages` writes another one"
        for name in sorted(names)
        if not (root / name).is_file() or content(root / name) != content(CHECKOUT / name)
    ]


def test_the_pages_of_the_arena(copy: Path) -> None:
    write_pages(Path("reports/arena"))
    summarise_arena()
    of_arena = {name for name in tracked() if "arena" in name}
    assert {"reports/arena/index.html", "reports/arena/summary.json", "docs/arena-results.md"} < of_arena
    assert differences(copy, of_arena) == []


def test_the_readme_and_the_page_over_all_studies(copy: Path) -> None:
    overview(Path("reports") / README_STUDY)
    assert differences(copy, {"reports/index.html", "README.md", f"docs/figures/{README_STUDY}.png"}) == []


def test_another_result_is_noticed(copy: Path) -> None:
    """The comparison of this file sees a title that differs, in a table and in a figure."""
    path = copy / "reports" / README_STUDY / "study.json"
    path.write_text(path.read_text().replace("MLWSE-L21", "MLWSE-L12"))
    write_readme(Path("README.md"), path.parent, Path("docs/figures"))
    seen = {line.partition(":")[0] for line in differences(copy, {"README.md", f"docs/figures/{README_STUDY}.png"})}
    assert seen == {"README.md", *([f"docs/figures/{README_STUDY}.png"] if drawn_as_committed() else [])}


@pytest.mark.slow
def test_one_command_writes_every_committed_page(copy: Path) -> None:
    assert main(["study", "report", "--all"]) == 0
    assert len(tracked()) > 40
    assert differences(copy, tracked()) == []


@pytest.mark.slow
def test_the_leaderboard_follows_from_the_tables(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but Elo, whose package is an extra and whose 1,000 bootstraps take long."""
    monkeypatch.setattr(arena, "_rating", lambda required=False: None)
    assert main(["arena", "rank"]) == 0
    written, committed = (
        json.loads((root / "reports" / "arena" / "leaderboard.json").read_text()) for root in (copy, CHECKOUT)
    )
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
    assert [each for each in sorted(names) if (folder / each).read_bytes() != (committed / each).read_bytes()] == []


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
