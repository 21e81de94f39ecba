"""What the wheel and the sdist carry, and that the installed package works far from any checkout."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

import multilab

pytestmark = pytest.mark.xdist_group("packaging")

CHECKOUT = Path(__file__).resolve().parents[2]
SITES = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 and later
# Written so that this file is not an address of an index itself.
INDEX_ADDRESS = re.compile(rb"pypi[.]org|python[h]osted|extra[-]index|index[-]url|/simpl[e]/", re.IGNORECASE)


def build(source: Path, *targets: str, out: Path) -> None:
    """Build without isolation and without network, as ``pip wheel --no-build-isolation`` would."""
    options = [option for target in targets for option in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", *options, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def wheel_content(folder: Path) -> dict[str, bytes]:
    """Return the files of the one wheel in a folder."""
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sdist_content(folder: Path) -> dict[str, bytes]:
    """Return the files of the one sdist in a folder, named from its top."""
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        opened = {m.name.split("/", 1)[1]: archive.extractfile(m) for m in archive.getmembers() if m.isfile()}
        return {name: stream.read() for name, stream in opened.items() if stream is not None}


def walked(folder: Path, but: str = "*.pyc") -> set[str]:
    """Return the files below a folder, relative to it."""
    files = (p for p in folder.rglob("*") if p.is_file() and not fnmatch(p.name, but))
    return {path.relative_to(folder).as_posix() for path in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the sdist of the checkout."""
    out = tmp_path_factory.mktemp("dist")
    build(CHECKOUT, "wheel", "sdist", out=out)
    return out


@pytest.fixture(scope="module")
def wheel(built):
    return wheel_content(built)


@pytest.fixture(scope="module")
def sdist(built):
    return sdist_content(built)


@pytest.mark.slow
def test_the_wheel_carries_all_settings(wheel):
    carried = {name.removeprefix("multilab/conf/") for name in wheel if name.startswith("multilab/conf/")}
    assert carried == walked(CHECKOUT / "conf")
    for needed in ("config.yaml", "tracking/default.yaml", "study/quick.yaml", "protocol/kfold5.yaml"):
        assert needed in carried
    for group in ("dataset", "method"):
        assert any(fnmatch(name, f"{group}/*.yaml") for name in carried)


def test_the_wheel_carries_the_code_and_its_data_files(wheel):
    carried = {name.removeprefix("multilab/") for name in wheel if name.startswith("multilab/")}
    carried = {name for name in carried if not name.startswith("conf/")}
    assert carried == walked(CHECKOUT / "src" / "multilab")
    for pattern in ("papers/*/published.csv", "reports/templates/*.j2"):
        assert any(fnmatch(name, pattern) for name in carried), pattern


def test_the_wheel_holds_no_kind_of_file_beyond_code_settings_tables_and_templates(wheel):
    kinds = {Path(name).suffix for name in wheel if ".dist-info/" not in name}
    assert kinds == {".py", ".yaml", ".csv", ".json", ".j2", ".js", ".bash", ".zsh", ".fish"}
    assert all(name.startswith(("multilab/", "multilab-")) for name in wheel)


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_no_file_of_the_clinical_data_is_in_a_package(kind, request):
    content = request.getfixturevalue(kind)
    assert [Path(name).name for name in content if "ccd" in name.lower()] == ["ccd.yaml"]
    (card,) = (text for name, text in content.items() if name.endswith("ccd.yaml"))
    assert yaml.safe_load(card)["name"] == "ccd"
    assert len(card) < 4096  # a card, not data


@pytest.mark.data
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_no_file_of_the_benchmark_data_is_in_a_package(kind, request, benchmark_data):
    content = request.getfixturevalue(kind)
    sizes: dict[int, list[Path]] = {}
    for path in benchmark_data.rglob("*"):
        if path.is_file():
            sizes.setdefault(path.stat().st_size, []).append(path)
    for name, text in content.items():
        if text:  # an empty file is nobody's data
            alike = [path for path in sizes.get(len(text), []) if path.read_bytes() == text]
            assert not alike, f"{name} is a copy of {alike[0]}"


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_no_package_names_an_index(kind, request):
    content = request.getfixturevalue(kind)
    assert not {name for name, text in content.items() if INDEX_ADDRESS.search(text)}


def test_the_sdist_has_an_explicit_list_that_keeps_everything_else_out(tmp_path):
    """No .gitignore helps here: the list alone must do it."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    listed = [entry.strip("/") for entry in settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    assert {"src", "conf", "README.md", "LICENSE", "pyproject.toml"} <= set(listed)
    copy = tmp_path / "copy"
    for entry in listed:
        if (CHECKOUT / entry).is_dir():
            shutil.copytree(CHECKOUT / entry, copy / entry)
        else:
            (copy / entry).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / entry, copy / entry)
    decoys = ("data/raw/ccd/x.arff", ".venv/x.py", "reports/quick/x.csv", "results/x.json", ".cells/k/arrays.npz")
    for decoy in (
        *decoys,
        "tests/project/test_x.py",
        "mlflow.db",
        "notes/private.md",
        "src/multilab/__pycache__/x.pyc",
    ):
        (copy / decoy).parent.mkdir(parents=True, exist_ok=True)
        (copy / decoy).write_text("not to be shipped")
    build(copy, "sdist", out=tmp_path / "out")
    content = sdist_content(tmp_path / "out")
    assert not [name for name in content if not name.startswith((*listed, "PKG-INFO", ".gitignore"))]
    assert not [name for name, text in content.items() if text == b"not to be shipped"]
    assert {name.removeprefix("conf/") for name in content if name.startswith("conf/")} == walked(CHECKOUT / "conf")


def test_the_wheel_made_from_the_sdist_is_the_wheel(built, wheel, tmp_path):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, **SAFELY)
    (source,) = tmp_path.glob("multilab-*")
    build(source, "wheel", out=tmp_path / "out")
    again = wheel_content(tmp_path / "out")
    assert {name: hashlib.sha256(text).hexdigest() for name, text in again.items()} == {
        name: hashlib.sha256(text).hexdigest() for name, text in wheel.items()
    }


# The installed package. A witness in the virtual environment notes every file that any Python process of it opens for
# writing, every file it reads, and every address it requests, so that other work in the checkout meanwhile harms not.
WITNESS = """
import os, sys
_writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_made = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "sqlite3.connect"}
_log = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def _note(kind, name):
    if isinstance(name, (str, bytes)):
        name = os.fsdecode(name).removeprefix("file:").partition("?mode=")[0]
        os.write(_log, (kind + " " + os.path.abspath(name) + "\\n").encode())

def _hear(event, args):
    if event == "open":
        _note("w" if args[2] & _writing else "r", args[0])
    elif event in _made:
        _note("w", args[1 if event == "os.rename" else 0])
    elif event == "socket.getaddrinfo":
        os.write(_log, ("n " + str(args[0]) + "\\n").encode())

sys.addaudithook(_hear)
"""

TINY = """
title: tiny
description: A test.
datasets: [scenario1]
methods: [mlknn, mlkelm]
protocol: {kfold: 2, stratify: 1, seed: 0}
metrics: [hamming_loss, macro_auc]
headline: hamming_loss
"""


class Installed:
    """The wheel in a virtual environment of its own, used from an empty folder.

    The environment borrows the libraries of the running one, but none of its ``.pth`` files, so that an editable
    installation of the checkout there cannot answer for the wheel.
    """

    def __init__(self, root: Path, wheel: Path) -> None:
        self.venv, self.folder, self.log = root / "venv", root / "empty", root / "witnessed"
        for path in (self.folder, root / "tmp", root / "home"):
            path.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(self.venv)], check=True)
        self.bin = self.venv / ("Scripts" if os.name == "nt" else "bin")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MULTILAB", "PYTHON", "MLFLOW"))}
        self.env = {
            **{k: v for k, v in kept.items() if k != "VIRTUAL_ENV"},
            "TMPDIR": str(root / "tmp"),
            "HOME": str(root / "home"),
            "WITNESS": str(self.log),
            "PYTHONDONTWRITEBYTECODE": "1",  # the libraries are borrowed
        }
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        self.run(str(self.bin / "python"), *install)
        (site,) = self.venv.glob("lib/python*/site-packages")
        (site / "witness.py").write_text(WITNESS)
        (site / "borrowed.pth").write_text("\n".join([*SITES, "import witness"]) + "\n")
        self.own = site / "multilab"

    def run(self, *argv: str, **env: str) -> str:
        """Run a command in the empty folder; it must succeed."""
        done = subprocess.run(
            argv, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"{' '.join(argv)} exited {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def multilab(self, *argv: str, **env: str) -> str:
        """Run the installed command."""
        return self.run(str(self.bin / "multilab"), *argv, **env)

    def witnessed(self, kind: str) -> set[str]:
        """Return what was noted: ``w`` files written, ``r`` files read, ``n`` addresses requested."""
        lines = self.log.read_text().splitlines()
        return {name for k, _, name in (line.partition(" ") for line in lines) if k == kind}


def within(path: str, *folders: Path | str) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The installed wheel, after its commands were used once in an empty folder."""
    (path,) = built.glob("*.whl")
    return Installed(tmp_path_factory.mktemp("installed"), path)


@pytest.mark.slow
def test_the_wheel_is_what_runs(installed):
    output = installed.run(str(installed.bin / "python"), "-c", "import multilab; print(multilab.__file__)")
    assert Path(output.strip()) == installed.own / "__init__.py"
    where = "from multilab import conf_dir; print(conf_dir())"
    assert Path(installed.run(str(installed.bin / "python"), "-c", where).strip()) == installed.own / "conf"


@pytest.mark.slow
def test_help_and_datasets_need_no_checkout_and_write_nothing(installed):
    assert "Usage: multilab" in installed.multilab("--help")
    assert installed.multilab("--version").strip() == multilab.__version__
    listed = {line.split()[0] for line in installed.multilab("datasets", "list").splitlines()[1:]}
    assert listed == {path.stem for path in (CHECKOUT / "conf" / "dataset").glob("*.yaml")}
    assert not list(installed.folder.iterdir())


@pytest.mark.slow
def test_a_sweep_fills_the_current_folder(installed):
    installed.multilab("train", "-m", "dataset=scenario1,scenario2", "method=glob(mlk*)", "protocol=kfold3")
    methods = sorted(path.stem for path in (CHECKOUT / "conf" / "method").glob("mlk*.yaml"))
    records = [json.loads(p.read_text()) for p in installed.folder.glob(".cells/[0-9a-f]*/record.json")]
    assert sorted((r["dataset"], r["method"], r["split"]) for r in records) == [
        (d, m, s) for d in ("scenario1", "scenario2") for m in methods for s in range(3)
    ]
    assert all((installed.folder / ".cells" / r["key"] / "DONE").is_file() for r in records)
    assert any((installed.folder / "data").rglob("scenario2*"))
    with sqlite3.connect(installed.folder / "mlflow.db") as database:
        rows = database.execute("SELECT name FROM runs WHERE lifecycle_stage = 'active' AND status = 'FINISHED'")
        assert sum(" on " in name for (name,) in rows.fetchall()) == 2 * len(methods)


@pytest.mark.slow
def test_a_study_with_own_settings_reports_to_the_current_folder(installed, tmp_path):
    shutil.copytree(installed.own / "conf", tmp_path / "conf")
    (tmp_path / "conf" / "study" / "tiny.yaml").write_text(TINY)
    installed.multilab("study", "run", "--study", "tiny", MULTILAB_CONF=str(tmp_path / "conf"))
    report = installed.folder / "reports" / "tiny"
    assert {"index.html", "scores.csv.gz", "measured.csv", "statistics.json.gz"} <= {p.name for p in report.iterdir()}
    assert "tiny" in (report / "index.html").read_text()
    assert (installed.folder / "results" / "tiny" / "train.zip").is_file()
    products = {p.name for p in installed.folder.iterdir()} - {"mlartifacts"}
    assert products == {".cells", "data", "mlflow.db", "mlflow.db.lock", "reports", "results"}


@pytest.mark.slow
def test_nothing_is_written_elsewhere_nor_read_from_the_checkout_nor_requested_from_the_network(installed):
    root = installed.folder.parent
    written = installed.witnessed("w")
    assert any(within(path, installed.folder / ".cells") for path in written)  # the witness was there
    assert any(path.endswith("mlflow.db") for path in written)
    allowed = (installed.folder, root / "tmp", root / "home", "/dev", "/proc")
    assert not {path for path in written if not within(path, *allowed)}
    borrowed = (*SITES, sys.prefix, sys.base_prefix, root)
    read = installed.witnessed("r")
    assert any(within(path, installed.own) for path in read)
    assert not {path for path in read if within(path, CHECKOUT) and not within(path, *borrowed)}
    assert not installed.witnessed("n")


def test_a_citation_names_the_version_of_the_package():
    assert yaml.safe_load((CHECKOUT / "CITATION.cff").read_text())["version"] == multilab.__version__
    assert f"version = {{{multilab.__version__}}}" in (CHECKOUT / "docs" / "index.md").read_text()


@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="an unpacked archive has no list of committed files")
def test_no_prepared_or_converted_data_is_committed() -> None:
    run = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    names = run.stdout.splitlines()
    assert "pyproject.toml" in names
    data = re.compile(r"(^|/)prepared/|[.](npy|arff|libsvm|mat)$", re.IGNORECASE)
    assert [name for name in names if data.search(name)] == []
