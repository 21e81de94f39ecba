"""Files of a card: mirror, cache and download, verified alike. The server is this machine."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.server
import io
import lzma
import threading
import zipfile

import pytest
import yaml

from multilab.datasets import DatasetError, fetch, fetching, load, prepare

CONTENT = b"wind,sun,rain,warm\n1.5,3,1,0\n2,0.25,0,0\n0,4,0,1\n"
COMMIT = "0123456789" * 4
PATH = f"/someone/weather/{COMMIT}/data/weather%20table.csv"
SOURCE = {
    "repository": "https://github.com/someone/weather",
    "commit": COMMIT,
    "source": "data/weather table.csv",
}


class Server(http.server.ThreadingHTTPServer):
    """Answers with what a test put into ``pages``: path -> (status, promised length, body).

    The first answers are those of ``busy``, whatever the path.
    """

    busy: list[int]
    pages: dict[str, tuple[int, int, bytes]]
    requests: list[str]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        status, length, body = self.server.pages.get(self.path, (404, 0, b""))
        if self.server.busy:
            status, length, body = self.server.busy.pop(0), 0, b""
        self.send_response(status)
        if status in (429, 503):
            self.send_header("Retry-After", "3600")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        """Stay silent."""


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as running:
        running.pages, running.requests, running.busy = {}, [], []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def base(server):
    return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def weather(tmp_path, monkeypatch, base):
    """Return a function that writes the card ``weather``; there is no mirror, no cache, no public net."""
    folder = tmp_path / "cards"
    folder.mkdir()
    monkeypatch.setenv("MULTILAB_CARDS", str(folder))
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MULTILAB_DOWNLOAD_BASE", base)
    monkeypatch.delenv("MULTILAB_DATA", raising=False)

    def write(content: bytes = CONTENT, **changes) -> None:
        file = {
            "role": "full",
            "path": "weather/weather.csv",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            **SOURCE,
            **changes,
        }
        card = {
            "title": "Three days",
            "reader": {"label_columns": ["rain", "warm"]},
            "files": [{key: value for key, value in file.items() if value is not None}],
        }
        (folder / "weather.yaml").write_text(yaml.safe_dump(card), "utf-8")

    return write


def kept(tmp_path) -> list[str]:
    folder = tmp_path / "cache"
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_download_is_verified_cached_and_not_repeated(weather, server, tmp_path):
    weather()
    server.pages[PATH] = (200, len(CONTENT), CONTENT)
    seen = []
    (path,) = fetch("weather", progress=lambda *step: seen.append(step))
    assert path == tmp_path / "cache" / "raw" / "weather" / "weather.csv"
    assert path.read_bytes() == CONTENT
    assert seen == [("weather/weather.csv", len(CONTENT), len(CONTENT))]
    assert fetch("weather") == [path]
    assert server.requests == [PATH]
    assert prepare("weather").meta["source"] == "cache"


def test_a_busy_server_is_asked_again(weather, server, monkeypatch):
    """Its wish that we wait an hour is not heard."""
    monkeypatch.setattr(fetching, "_PAUSE", 0)
    weather()
    server.pages[PATH] = (200, len(CONTENT), CONTENT)
    server.busy = [503, 503]
    assert fetch("weather")[0].read_bytes() == CONTENT
    assert server.requests == [PATH] * 3


def test_a_server_that_stays_busy_is_given_up(weather, server, monkeypatch, tmp_path):
    monkeypatch.setattr(fetching, "_PAUSE", 0)
    weather()
    server.busy = [429] * 100
    with pytest.raises(DatasetError, match="the server answered 429"):
        fetch("weather")
    assert len(server.requests) == 5
    assert kept(tmp_path) == []


@pytest.mark.parametrize("excepted", [False, True])
def test_a_proxy_of_the_environment_is_used(excepted, weather, server, base, monkeypatch):
    weather()
    server.pages |= dict.fromkeys((PATH, f"http://localhost:9{PATH}"), (200, len(CONTENT), CONTENT))
    monkeypatch.setenv("MULTILAB_DOWNLOAD_BASE", base if excepted else "http://localhost:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9" if excepted else base)
    monkeypatch.setenv("no_proxy", "127.0.0.1" if excepted else "")
    assert fetch("weather")[0].read_bytes() == CONTENT
    assert server.requests == [PATH if excepted else f"http://localhost:9{PATH}"]


def test_loading_downloads_what_is_not_there(weather, server):
    weather()
    server.pages[PATH] = (200, len(CONTENT), CONTENT)
    assert load("weather").Y.tolist() == [[1, 0], [0, 0], [0, 1]]
    assert prepare("weather").meta["source"] == "download"
    assert len(server.requests) == 1


def test_the_base_can_be_an_argument(weather, server, base, monkeypatch):
    weather()
    monkeypatch.setenv("MULTILAB_DOWNLOAD_BASE", "http://127.0.0.1:9")
    server.pages[PATH] = (200, len(CONTENT), CONTENT)
    assert len(fetch("weather", base=base + "/")) == 1


@pytest.mark.parametrize(
    ("status", "length", "body", "message"),
    [
        (200, len(CONTENT), CONTENT[:-5], "expected 48 bytes, found 43|could not be downloaded"),
        (200, len(CONTENT) - 5, CONTENT[:-5], "expected 48 bytes, found 43"),
        (200, len(CONTENT), CONTENT.replace(b"1.5", b"1.6"), "expected sha256 .{64}, found .{64}"),
        (200, 1 << 20, b"x" * (1 << 20), "more than the .* bytes that the card allows"),
        (200, len(CONTENT) + 1, CONTENT + b"\n", "expected 48 bytes, found 49"),
        (200, 0, b"", "expected 48 bytes, found 0"),
        (404, 0, b"", "the server answered 404"),
        (500, 0, b"", "the server answered 500"),
    ],
)
def test_a_wrong_download_is_refused_and_not_kept(status, length, body, message, weather, server, base, tmp_path):
    assert len(CONTENT) == 48
    weather()
    server.pages[PATH] = (status, length, body)
    with pytest.raises(DatasetError, match=message) as caught:
        fetch("weather", timeout=2)
    assert base + PATH in str(caught.value)
    assert kept(tmp_path) == []


def test_without_a_network_it_says_what_to_do(weather, monkeypatch, tmp_path):
    weather()
    monkeypatch.setenv("MULTILAB_DOWNLOAD_BASE", "http://127.0.0.1:9")
    with pytest.raises(DatasetError, match=r"Connect to the network, or set MULTILAB_DATA .* weather/weather\.csv"):
        fetch("weather", timeout=2)
    assert kept(tmp_path) == []


def test_a_silent_server_is_given_up(weather, server, tmp_path):
    weather()
    server.pages[PATH] = (200, len(CONTENT), b"")  # promises more than it sends, and closes
    with pytest.raises(DatasetError):
        fetch("weather", timeout=0.5)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(("ending", "compress"), [("xz", lzma.compress), ("bz2", bz2.compress), ("gz", gzip.compress)])
def test_a_compressed_source_is_kept_plain(ending, compress, weather, server):
    packed = compress(CONTENT)
    weather(source=f"data/weather.csv.{ending}")
    server.pages[f"/someone/weather/{COMMIT}/data/weather.csv.{ending}"] = (200, len(packed), packed)
    (path,) = fetch("weather")
    assert path.read_bytes() == CONTENT


def test_a_compressed_source_may_not_grow_beyond_the_promise(weather, server, tmp_path):
    bomb = bz2.compress(bytes(50_000_000))
    weather(source="data/weather.csv.bz2")
    server.pages[f"/someone/weather/{COMMIT}/data/weather.csv.bz2"] = (200, len(bomb), bomb)
    with pytest.raises(DatasetError, match="expected 48 bytes, found 49"):
        fetch("weather")
    damaged = bz2.compress(CONTENT)[:-8]
    server.pages[f"/someone/weather/{COMMIT}/data/weather.csv.bz2"] = (200, len(damaged), damaged)
    with pytest.raises(DatasetError, match="damaged"):
        fetch("weather")
    assert kept(tmp_path) == []


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


def archive_card(weather, base, archive: bytes, member: str, **changes) -> None:
    none = dict.fromkeys(SOURCE)
    weather(**none, url=f"{base}/a.zip", member=member, archive_bytes=len(archive), **changes)


def test_one_member_of_an_archive_is_read_and_nothing_is_extracted(weather, server, base, tmp_path):
    """The archive also has members that would leave the folder if it were extracted."""
    archive = zipped(**{"data__w.csv": CONTENT, "..__..__evil.txt": b"evil", "__etc__evil.txt": b"evil", "other": b"x"})
    server.pages["/a.zip"] = (200, len(archive), archive)
    archive_card(weather, base, archive, "data/w.csv")
    (path,) = fetch("weather")
    assert path.read_bytes() == CONTENT
    assert kept(tmp_path) == ["raw/weather/weather.csv"]
    assert not list(tmp_path.rglob("*evil*"))


def test_a_path_outside_an_archive_is_refused(weather, server, base, tmp_path):
    archive = zipped(**{"..__..__evil.txt": CONTENT})
    server.pages["/a.zip"] = (200, len(archive), archive)
    archive_card(weather, base, archive, "../../evil.txt")
    with pytest.raises(DatasetError, match="may not leave its folder"):
        fetch("weather")
    assert server.requests == []
    assert kept(tmp_path) == []


def test_wrong_archives_are_refused(weather, server, base, tmp_path):
    archive = zipped(**{"w.csv": bytes(20_000_000)})
    server.pages["/a.zip"] = (200, len(archive), archive)
    archive_card(weather, base, archive, "w.csv")
    with pytest.raises(DatasetError, match="expected 48 bytes, found 49"):
        fetch("weather")
    archive_card(weather, base, archive, "v.csv")
    with pytest.raises(DatasetError, match=r"no member 'v\.csv'"):
        fetch("weather")
    archive_card(weather, base, archive[:-1], "w.csv")
    with pytest.raises(DatasetError, match="more than the"):
        fetch("weather")
    server.pages["/a.zip"] = (200, 100, b"no archive" * 10)
    archive_card(weather, base, b"x" * 100, "w.csv")
    with pytest.raises(DatasetError, match="damaged"):
        fetch("weather")
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("ending", "compress"),
    [("", bytes), (".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)],
)
def test_a_mirror_may_be_compressed(ending, compress, weather, server, tmp_path, monkeypatch):
    weather()
    mirror = tmp_path / "mirror" / "weather"
    mirror.mkdir(parents=True)
    (mirror / f"weather.csv{ending}").write_bytes(compress(CONTENT))
    monkeypatch.setenv("MULTILAB_DATA", str(tmp_path / "mirror"))
    assert fetch("weather") == [mirror / f"weather.csv{ending}"]
    assert load("weather").Y.sum() == 2
    assert prepare("weather").meta["source"] == "mirror"
    assert server.requests == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT.replace(b"1.5", b"1.6"), "expected sha256 .{64}, found .{64}"),
        (CONTENT[:-1], "expected 48 bytes, found 47"),
        (CONTENT * 2, "expected 48 bytes, found more"),
        (b"", "empty"),
    ],
)
@pytest.mark.parametrize("location", ["mirror", "cache"])
def test_a_wrong_file_is_refused_wherever_it_lies(location, content, message, weather, server, tmp_path, monkeypatch):
    weather()
    folder = tmp_path / {"mirror": "mirror/weather", "cache": "cache/raw/weather"}[location]
    folder.mkdir(parents=True)
    (folder / "weather.csv").write_bytes(content)
    monkeypatch.setenv("MULTILAB_DATA", str(tmp_path / "mirror"))
    for ask in (fetch, load):
        with pytest.raises(DatasetError, match=message) as caught:
            ask("weather")
        assert str(folder / "weather.csv") in str(caught.value)
    assert server.requests == []


def test_the_mirror_comes_before_the_cache(weather, tmp_path, monkeypatch):
    weather()
    for folder in ("mirror/weather", "cache/raw/weather"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "weather.csv").write_bytes(CONTENT)
    monkeypatch.setenv("MULTILAB_DATA", str(tmp_path / "mirror"))
    assert fetch("weather") == [tmp_path / "mirror/weather/weather.csv"]
    monkeypatch.setenv("MULTILAB_DATA", str(tmp_path / "nowhere"))
    assert fetch("weather") == [tmp_path / "cache/raw/weather/weather.csv"]


def test_sets_without_files_and_sets_that_are_not_available():
    assert fetch("digit-segments") == []
    with pytest.raises(DatasetError, match="pascal-voc07 is not available"):
        fetch("pascal-voc07")


@pytest.mark.data
def test_addresses_and_mirror_agree_on_variants(benchmark_data):
    """Every file that a card points to, its variants included, is the one of the mirror."""
    paths = [path for name in ("scene", "birds", "enron") for path in fetch(name, variants=True)]
    assert {path.name for path in paths} >= {"Scene.arff.bz2", "Birds-kdis.xml", "mlwse-enron.mat"}
    assert not [path for path in fetch("scene") if path.name == "Scene.arff.bz2"]
