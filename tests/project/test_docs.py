"""The documentation: links resolve, every page is reachable, code blocks run. `make docs` builds the site."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from packaging.version import Version

import multilab
from helpers.arena_sample import write_arena
from helpers.command_line import parse
from helpers.page_code import run_code
from helpers.report_files import write_fake_study
from multilab.core.lazy import RENAMED
from multilab.methods import all_estimators

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
SECONDS = ("guide/first-model", "guide/serve", "guide/evaluate")  # pages whose Python takes several
GENERATED = ("architecture/files", "gallery/", "reference/generated/")


@cache
def pages() -> dict[str, str]:
    """Return the text of every page that is not generated, by its path without suffix."""
    skipped = {"_build", "gallery", "generated", "examples", "_static", "_extensions"}
    files = [path for path in DOCS.rglob("*.md") if not skipped & set(path.relative_to(DOCS).parts)]
    named = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in sorted(files)}
    return {name: path.read_text() for name, path in named.items() if not name.startswith(GENERATED)}


def without_code(text: str) -> str:
    return re.sub(r"^( *)(```+)[^\n]*\n.*?^\1\2$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: headings as GitHub and MyST name them, and explicit targets."""
    headings = re.findall(
        r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    plain = [
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", h).lower()).replace(" ", "-")
        for h in headings
    ]
    explicit = re.findall(r"^\(([\w.-]+)\)=$", text, re.MULTILINE) + re.findall(r'<a (?:id|name)="([\w.-]+)"', text)
    return {*plain, *explicit}


def broken(source: Path, target: str) -> str | None:
    """Return why a link from a file leads nowhere, ``None`` if it leads somewhere."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    file = (source.parent / path).resolve() if path else source
    if file.is_relative_to(DOCS) and file.relative_to(DOCS).as_posix().startswith(GENERATED):
        return None
    if file.is_relative_to(CHECKOUT / "reports") and file.suffix == ".html" and source.is_relative_to(DOCS):
        return None  # pages are built before the site, whose links are checked when it is built
    if not file.exists():
        return f"{source.relative_to(CHECKOUT)}: there is no {target}"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
        return f"{source.relative_to(CHECKOUT)}: there is no #{anchor} in {file.relative_to(CHECKOUT)}"
    return None


def test_every_link_leads_somewhere() -> None:
    sources = [DOCS / f"{name}.md" for name in pages()]
    sources += [
        CHECKOUT / "README.md",
        CHECKOUT / "CONTRIBUTING.md",
        CHECKOUT / "ROADMAP.md",
        CHECKOUT / "CHANGELOG.md",
    ]
    links = [
        (path, target) for path in sources for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text()))
    ]
    assert len(links) > 40
    assert [reason for path, target in links if (reason := broken(path, target))] == []


def tracked() -> set[str]:
    """Return the files of the repository, and the folders that hold them."""
    run = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    files = [Path(name) for name in run.stdout.split("\0") if name]
    return {path.as_posix() for file in files for path in (file, *file.parents)}


@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="not a clone")
def test_what_the_readme_links_is_committed() -> None:
    targets = re.findall(r"\]\(([^)\s#]+)", without_code((CHECKOUT / "README.md").read_text()))
    files = {target for target in targets if not re.match(r"[a-z]+:", target)}
    assert "docs/papers/index.md" in files
    assert files - tracked() == set()


def toctree(name: str) -> set[str]:
    """Return the pages that a page's tables of contents name."""
    entries: set[str] = set()
    folder = (DOCS / name).parent
    for options, body in re.findall(
        r"^```\{toctree\}\n((?::[^\n]*\n)*)\n?(.*?)^```", pages()[name], re.DOTALL | re.MULTILINE
    ):
        for line in filter(None, map(str.strip, body.splitlines())):
            paths = sorted(folder.glob(f"{line}.md")) if ":glob:" in options else [folder / f"{line}.md"]
            entries |= {os.path.relpath(path.with_suffix(""), DOCS) for path in paths}
    return entries


def test_every_page_is_reachable_from_the_index() -> None:
    seen, todo = set(), {"index"}
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= (
            {entry for entry in toctree(name) if not entry.startswith(GENERATED)} - seen if name in pages() else set()
        )
    assert seen - set(pages()) <= {"gallery/index"}
    assert set(pages()) - seen == set()


def test_the_generated_reference_is_listed_and_not_committed() -> None:
    sys.path.insert(0, str(DOCS / "_extensions"))
    import multilab_reference as reference

    listed = {name for page in pages() for name in toctree(page) if name.startswith("reference/generated/")}
    assert listed == {f"reference/generated/{name}" for name in reference.PAGES}
    if (CHECKOUT / ".git").exists():
        run = subprocess.run(["git", "ls-files", "docs"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
        assert [name for name in run.stdout.split() if name.removeprefix("docs/").startswith(GENERATED)] == []


def test_every_class_and_function_that_a_package_exports_has_a_page_in_the_reference() -> None:
    sys.path.insert(0, str(DOCS / "_extensions"))
    import multilab_reference as reference

    text = "\n".join(page() for page in reference.PAGES.values())
    listed = re.findall(r"^   ~multilab\.(\S+)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed)) > 200
    packages = (getattr(multilab, name) for name in multilab.__all__ if inspect.ismodule(getattr(multilab, name)))
    exported = {member for package in packages for member in getattr(package, "__all__", ())}
    exported |= {cls.__name__ for cls in all_estimators()}
    values = {"METRICS", "PRESETS", "NOT_DECIDED", "NOT_REPRODUCED", "REPRODUCED"}
    assert exported - {name.rpartition(".")[2] for name in listed} == values


def test_the_public_names_are_those_of_the_committed_list() -> None:
    sys.path.insert(0, str(DOCS / "_extensions"))
    import multilab_reference as reference

    listed = (DOCS / "reference" / "public-names.txt").read_text().splitlines()
    assert len(listed) > 300
    assert listed == reference.public_names(), "python docs/_extensions/multilab_reference.py writes the list anew"


def test_renamed_public_names_still_work_until_the_release_that_removes_them() -> None:
    for old, (new, removed_in) in RENAMED.items():
        assert Version(multilab.__version__) < Version(removed_in)
        (package, name), (home, current) = (path.rsplit(".", 1) for path in (old, new))
        with pytest.warns(FutureWarning):
            found = getattr(import_module(package), name)
        assert found is getattr(import_module(home), current)


def test_a_dead_link_anchor_or_icon_of_the_site_is_named(tmp_path: Path, capsys) -> None:
    sys.path.insert(0, str(DOCS / "_extensions"))
    from site_links import main

    (tmp_path / "site" / "guide").mkdir(parents=True)
    (tmp_path / "outside.html").write_text("")
    links = ("b.html#there", "guide/", "#top", "b.html?x=1", "a%20b.csv", "https://example.org/none", "mailto:a@b.org")
    dead = ("c.html", "b.html#none", "#none", "/guide/none.png", "../outside.html", "guide/data.csv")
    icon = '<link rel="shortcut icon" href="icon.ico">'
    anchors = "".join(f'<a href="{link}">x</a>' for link in (*links, *dead))
    (tmp_path / "site/a.html").write_text(f'{icon}<body id="top">{anchors}<img src="none.svg"></body>')
    (tmp_path / "site/b.html").write_text(f'{icon}<a name="there"></a>')
    (tmp_path / "site/a b.csv").write_text("")
    (tmp_path / "site/icon.ico").write_text("")
    (tmp_path / "site/guide/index.html").write_text("a page without an icon")
    assert main(str(tmp_path / "site")) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a.html: there is no c.html",
        "a.html: there is no anchor b.html#none",
        "a.html: there is no anchor #none",
        "a.html: there is no /guide/none.png",
        "a.html: there is no ../outside.html",
        "a.html: there is no guide/data.csv",
        "a.html: there is no none.svg",
        "guide/index.html: there is no /favicon.ico",
    ]


@pytest.mark.slow
def test_reports_are_part_of_the_site_with_all_they_link_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sys.path.insert(0, str(DOCS / "_extensions"))
    import site_links
    from site_links import copy_reports, dead_links, link_reports

    from multilab.reports import build_report, write_overview
    from multilab.reports.arena.page import build_arena_page

    pytest.importorskip("matplotlib")
    checkout, site = tmp_path / "checkout", tmp_path / "site"
    build_report(write_fake_study(checkout / "reports" / "fake"))
    build_arena_page(write_arena(checkout / "reports"))
    write_overview(checkout / "reports")
    monkeypatch.setattr(site_links, "ROOT", checkout)
    site.mkdir()
    copy_reports(SimpleNamespace(outdir=site), None)
    shutil.copy(DOCS / "favicon.ico", site)
    (site / "index.html").touch()  # the first page, to which the head of each report leads
    assert '<a href="../../index.html">' in (site / "reports/arena/index.html").read_text()
    assert (site / "reports/fake/scores.csv.gz").is_file()
    assert dead_links(site) == []
    page = ["see [`all` studies](../../reports/index.html) and [a page](dvc.md)"]
    link_reports(None, "guide/compare", page)
    assert page == ['see <a href="../reports/index.html">`all` studies</a> and [a page](dvc.md)']


def test_generated_restructured_text_is_not_read_as_markdown() -> None:
    wrong = re.compile(r"^```\{include\} \S+\.inc$", re.MULTILINE)  # MyST's include has no other parser
    assert [name for name, text in pages().items() if wrong.search(text)] == []


@pytest.mark.slow
def test_the_figure_of_missing_labels_is_that_of_the_committed_study(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(DOCS / "_extensions"))
    import study_figures

    study_figures.write(tmp_path)
    text, figure = ((tmp_path / f"missing-labels.{suffix}").read_text() for suffix in ("inc", "svg"))
    assert text.startswith(
        "Observed labels alone: with 50% of the training labels the median method keeps 96% of its Micro F1."
    )
    assert figure.count("ML-RBF") == 1
    assert "observed share" in figure


def test_glossary_terms_exist() -> None:
    terms = set(re.findall(r"^([a-z][\w ]*)\n  \S", pages()["glossary"], re.MULTILINE))
    assert terms
    used = {
        re.sub(r".*<(.*)>", r"\1", term) for text in pages().values() for term in re.findall(r"\{term\}`([^`]*)`", text)
    }
    assert used - terms == set()


def python_blocks(name: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", pages()[name], re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SECONDS else ())
        for name in pages()
        if name.startswith(("getting-started", "arena", "guide/"))
    ],
)
def test_python_of_a_page_runs(name: str, tmp_path: Path) -> None:
    code = python_blocks(name)
    if not code:
        pytest.skip("no Python on this page")
    assert run_code(code, tmp_path) == ""


@pytest.mark.slow
def test_commands_of_getting_started_run(tmp_path: Path) -> None:
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", pages()["getting-started"], re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert len(lines) >= 3
    for line in lines:
        command = [sys.executable, "-m", *shlex.split(line, comments=True)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert "mlknn" in done.stdout


PLACES = ["README.md", "CONTRIBUTING.md", "Makefile", ".github/**/*.yml", ".github/**/*.sh", ".ci/*", "conf/**/*.yaml"]


def command_lines(path: Path) -> list[str]:
    """Return the commands of this program in a file: lines of code, and code within a line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"```[^\n]*\n.*?```|`[^`]+`", text, re.DOTALL))
    shown = re.findall(
        r"(?:^|[`@\"] *|\$ |&& |then |run: )multilab ([a-z](?:'[^'\n]*'|[^`#\n\"|&;])*)", text, re.MULTILINE
    )
    ends = re.compile(r" {2,}.*| -> .*| > .*|(?<!=)\{.*|\$.*|\\\n?.*")
    return [line for line in (ends.sub("", command).strip() for command in shown) if line]


def test_every_command_in_the_docs_and_in_messages_is_one_of_the_parser() -> None:
    files = [DOCS / f"{name}.md" for name in pages()]
    files += [path for place in PLACES for path in sorted(CHECKOUT.glob(place)) if path.is_file()]
    files += [path for ending in ("py", "j2") for path in sorted((CHECKOUT / "src" / "multilab").rglob(f"*.{ending}"))]
    lines = {(path, line) for path in files for line in command_lines(path)}
    assert len(lines) > 150
    wrong = []
    for path, line in sorted(lines):
        try:
            parse([word for word in shlex.split(line) if word not in ("...", "--help")])
        except (click.MissingParameter, click.BadOptionUsage):  # a text may name a command without all its arguments
            pass
        except (click.UsageError, ValueError) as error:
            wrong.append(f"{path.relative_to(CHECKOUT)}: multilab {line}: {error}")
    assert not wrong, "\n".join(wrong)


def test_the_gallery_has_one_figure_per_script() -> None:
    scripts = sorted((DOCS / "examples").glob("plot_*.py"))
    assert len(scripts) >= 8
    for script in scripts:
        text = script.read_text()
        assert re.match(r'"""\n(.+)\n(=+)\n\n', text), script.name
        assert text.count("plt.subplots(") == 1, script.name
        assert len(text.splitlines()) <= 60, script.name
