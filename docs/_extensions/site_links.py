"""Links of the site: the files that reports link to are part of it, and none is dead (`site_links.py FOLDER`).

As a Sphinx extension it copies the reports next to the pages; as a program it checks a built site without a network.
"""

import re
import shutil
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]

_ADDRESSES = ("href", "src")


def setup(app: Any) -> dict[str, Any]:
    """Link pages to reports, and copy the reports when the pages are written."""
    app.connect("source-read", link_reports)
    app.connect("build-finished", copy_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link_reports(app: Any, name: str, source: list[str]) -> None:
    """Make links of a Markdown page to reports in the repository links to those on the site.

    MyST would copy the page alone into a folder of downloads, where its own links are dead.
    """
    up = "../" * name.count("/")
    pattern = r"\[([^]]+)\]\((?:\.\./)+(reports/[^)\s#]+\.html(?:#[^)\s]*)?)\)"
    source[0] = re.sub(pattern, rf'<a href="{up}\2">\1</a>', source[0])


def copy_reports(app: Any, error: Exception | None) -> None:
    """Copy the committed reports, and the files they link to, under their paths; pages get a link to the first page."""
    waiting = [] if error else sorted((ROOT / "reports").glob("**/index.html"))
    copied = set()
    while waiting:
        path = waiting.pop()
        if path in copied or not path.is_file() or not path.is_relative_to(ROOT):
            continue
        copied.add(path)
        target = Path(app.outdir) / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        if path.suffix == ".html":
            up = "../" * (len(path.relative_to(ROOT).parts) - 1)
            way_back = f'<p class="eyebrow"><a href="{up}index.html">Documentation</a> · '
            text = target.read_text(encoding="utf-8").replace('<p class="eyebrow">', way_back, 1)
            target.write_text(text, encoding="utf-8")
            targets = (target_of(path, link, ROOT) for link in read_page(path).links)
            waiting += [file for file, _ in filter(None, targets)]


class _Page(HTMLParser):
    """The addresses on a page, and the anchors that addresses may name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: dict[str, None] = {}
        self.anchors: set[str] = set()
        self.icon = False
        self.feed(text)
        if not self.icon:  # a browser then requests this one
            self.links["/favicon.ico"] = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names and links to."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.links |= {values[name]: None for name in _ADDRESSES if name in values}
        self.icon |= tag == "link" and "icon" in values.get("rel", "").split()


@cache
def read_page(path: Path) -> _Page:
    """Return the parsed page of a file."""
    return _Page(path.read_text(encoding="utf-8"))


def target_of(page: Path, link: str, root: Path) -> tuple[Path, str] | None:
    """Return the file and the anchor that a link on a page leads to, ``None`` for an address elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    start = root if parts.path.startswith("/") else page.parent
    path = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    return path / "index.html" if path.is_dir() else path, unquote(parts.fragment)


def dead_links(root: Path) -> list[str]:
    """Return a line for each link of the pages below a folder that leads nowhere."""
    dead = []
    root = root.resolve()
    for page in sorted(root.rglob("*.html")):
        if "_static" in page.relative_to(root).parts:  # templates of the theme
            continue
        for link in read_page(page).links:
            target = target_of(page, link, root)
            if target is None:
                continue
            path, anchor = target
            if not (path.is_file() and path.is_relative_to(root)):
                dead.append(f"{page.relative_to(root)}: there is no {link}")
            elif anchor and path.suffix == ".html" and anchor not in read_page(path).anchors:
                dead.append(f"{page.relative_to(root)}: there is no anchor {link}")
    return dead


def main(folder: str) -> int:
    """Print the dead links; exit code 1 if there is one."""
    dead = dead_links(Path(folder))
    print(*dead, sep="\n", end="\n" if dead else "")
    if dead:
        print(f"{len(dead)} dead links in {folder}", file=sys.stderr)
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
