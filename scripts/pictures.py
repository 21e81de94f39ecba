"""Pictures of the README and of the first page of the documentation: screenshots of pages that multilab writes.

    python scripts/pictures.py [CHROMIUM]

It makes a table of films with text, dates, prices and tags, compares a method of each kind on it, and takes pictures of
that page and of two reports, which `make pages` has written. It needs Chromium.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS = {
    "war": "soldiers front battle general trench bomb retreat orders tank siege",
    "love": "hearts paris wedding kiss letter promise summer dance longing reunion",
    "crime": "detective murder robbery clue suspect gang prison judge witness poison",
    "space": "rocket orbit planet crew signal alien station gravity moon captain",
    "comedy": "neighbours mistake party uncle disguise joke cake rehearsal parrot dinner",
}
METHODS = "br_linear_svm,cc_logistic,ecc,erf_pct,mlknn,relm"
FILLER = "one day then after years town family old young story returns finds learns against time"


def films(path: Path, rows: int = 800) -> None:
    """Write a table with title, plot, release, price and genres."""
    draw = random.Random(7)
    lines = ["title,plot,released,price,country,genres"]
    for row in range(rows):
        genres = [name for name in WORDS if draw.random() < 0.3] or [draw.choice(list(WORDS))]
        words = [draw.choice(WORDS[name].split()) for name in genres if draw.random() < 0.9]
        words += draw.choices(" ".join(WORDS.values()).split(), k=draw.randint(0, 1)) + draw.choices(
            FILLER.split(), k=12
        )
        draw.shuffle(words)
        price = f'"{draw.randint(4, 19)},{draw.choice(["00", "50", "99"])} €"'
        released = f"{draw.randint(1960, 2025)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        country = draw.choice(["France", "Korea", "Brazil", "Sweden"])
        lines.append(f"Film {row},{' '.join(words)},{released},{price},{country},{'|'.join(genres)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def picture(chromium: str, page: Path, section: str, out: Path, size: tuple[int, int], profile: Path) -> None:
    """Take a picture of the tables and figures of one section of a page, in a window of this size."""
    from PIL import Image

    hidden = f"section:not(#{section}):not(:has(#{section})), header, nav, footer, p, ul, details, .choice, figcaption"
    hidden += ", .board :is(th, td):nth-child(n + 5)"  # a door has room for four columns of the arena
    shown = "figure { max-width: 560px; margin: 1rem auto } h2 { margin: 1rem 0 }"
    style = f"{hidden} {{ display: none !important }} {shown}"
    alone = profile.parent / f"{out.stem}.html"
    alone.write_text(page.read_text(encoding="utf-8") + f"<style>{style}</style>", encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"]
    options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    where = [f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1] + 600}", f"--screenshot={out}"]
    where.append("--force-device-scale-factor=2")
    subprocess.run([chromium, *options, *where, alone.resolve().as_uri()], check=True, capture_output=True)
    with Image.open(out) as whole:  # Chromium does not paint the last rows of a table that leaves the window
        top = whole.crop((0, 0, 2 * size[0], 2 * size[1]))
    top.quantize(64).save(out, optimize=True)


def main(chromium: str = "chromium") -> None:
    """Make the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        films(folder / "films.csv")
        for command in (
            ["datasets", "add", "films.csv", "--tags", "genres", "--drop", "title"],
            ["compare", "--dataset", "films", "--method", METHODS, "--budget", "5m", "--output", "page"],
        ):
            subprocess.run([sys.executable, "-m", "multilab", *command], cwd=folder, check=True)
        reports, static = ROOT / "reports", ROOT / "docs" / "_static"
        doors = (640, 360)  # shown at 300 pixels: a wider page would be too small to read
        for page, section, out, size in (
            (folder / "page", "leaderboard", ROOT / "docs" / "figures" / "compare.png", (1100, 750)),
            (folder / "page", "leaderboard", static / "door-table.png", doors),
            (reports / "mlwse-core", "scores", static / "door-method.png", doors),
            (reports / "arena", "leaderboard", static / "door-arena.png", doors),
        ):
            picture(chromium, page / "index.html", section, out, size, folder / "profile")
            print(out.relative_to(ROOT))


if __name__ == "__main__":
    main(*sys.argv[1:2])
