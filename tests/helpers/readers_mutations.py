"""Small files of every format and random changes of them, for the fuzz test of the readers."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from random import Random
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from helpers.readers_samples import DENSE, XML, numeric

X = np.array([[1, 0, 2.5], [0, 0, -1], [3, 4, 0], [0, 1, 1], [2, 0, 0]])
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]], dtype=np.uint8)
CSV = "height,width,depth,sun,rain\n" + "".join(
    ",".join(map(str, [*x, *y])) + "\n" for x, y in zip(X.tolist(), Y.tolist(), strict=True)
)
COMMAS = "width;price;town;sun;rain\n1,5;1.234,50;Köln;1;0\n-2;1.000;Łódź;0;1\n,5;3;;1;1\n0,25;12,5;Köln;0;0\n"
RAGGED = CSV.replace("3,4,0,", "3,4,0,7,8,", 1).replace("0,1,1,", "0,", 1)
QUOTED = 'town,"size, m",note,sun,rain\n' + "".join(
    f'"{town}",{size},"said ""{k}"",\n\nno more",{k % 2},{(k + 1) % 2}\n'
    for k, (town, size) in enumerate([("Köln", 1.5), ("Łódź, old", 2), ("NA", "?"), ("Köln", 7e-3), ("x;y", -4)])
)
SVM = "1,2 1:0.5 3:-1e2\n2 2:1 # a comment\n 1:3\n1 1:1 2:2 3:3\n"
XC = "4 3 2\n0,1 0:0.5 2:-1\n1 1:1\n\n0 0:1 1:2 2:3\n"
TOKENS = [b"nan", b"inf", b"-1", b"1e999", b"0x1f", b"1_0", b"?", b"'", b'"', b"{", b"}", b",", b";", b"\t", b"%",
          b"\\", b"@data\n", b"@attribute q {a,b}\n", b"\n", b"\r", b"\x00", b"\x1b[2J", b"\xff", b"\xe2\x80\xae", b":",
          b"#", b"9" * 400, b" " * 400, b"2147483648", b"99999999999999999999", b"<label/>", b"&amp;", b"<!DOCTYPE x>",
          b"<?xml version='1.0' encoding='utf-7'?>", b"-C 9", b"\xef\xbb\xbf", b"\xff\xfe", b"\x00" * 9]  # fmt: skip
EXTREMES = [0, -1, 1, 10, 2**31 - 1, -(2**31), 2**16, 100, 2**24]


def mat(compressed: bool = False, sparse: bool = False, version: str = "5") -> bytes:
    """Return a .mat file of ``X`` and ``Y``."""
    buffer = io.BytesIO()
    data = sp.csc_matrix(X) if sparse else X
    target = sp.csc_matrix(Y.astype(float)) if sparse else Y.T
    scipy.io.savemat(buffer, {"data": data, "target": target}, do_compression=compressed, format=version)
    return buffer.getvalue()


def typed(kind: str, **options: object) -> bytes:
    """Return a Parquet or Feather file: numbers, truth values, dates, texts, categories, lists of texts and vectors."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        day=pd.to_datetime(["2024-01-31", "2024-02-01", None, "1999-12-31", "2024-01-31"]),
        town=["Köln", "Łódź", None, "x;y", "Köln"],
        size=pd.Categorical(["s", "m", "s", None, "l"]),
        words=[["so", "quiet"], ["loud"], None, [], ["loud", "song"]],
        place=[[1.5, 2], [0, -1], [3, 4e9], [1, 1], [2, 7]],
        sun=Y[:, 0].astype(bool),
        rain=Y[:, 1],
    )
    buffer = io.BytesIO()
    getattr(frame, f"to_{kind}")(buffer, **options)
    return buffer.getvalue()


def people() -> Any:
    """Return a table as people have it: text, a number in disguise, dates, categories, tags."""
    import pandas as pd

    return pd.DataFrame(
        {
            "remark": ["so quiet, so slow a song", "loud", None, "a loud song to dance to", "n/a"],
            "price": ["1,50 €", "12 €", "-", "1.200,00 €", "3,5 €"],
            "day": ["31.1.2024", "1.2.2024 06:30", "2.2.2024", "", "31.12.1999"],
            "town": ["Köln", "Łódź", "Köln", "x;y", "Köln"],
            "size": [1.5, 2, None, 7e-3, -4],
            "tags": ["war|drama", "war", "", "drama", "war|noir"],
        }
    )


def excel() -> bytes:
    """Return an Excel file of that table."""
    buffer = io.BytesIO()
    people().to_excel(buffer, index=False)
    return buffer.getvalue()


def seeds() -> dict[str, tuple[str, bytes, dict[str, object]]]:
    """Return for each kind the file name, the content and the reader options of a sound file.

    "mat 4" is sound, too, and refused.
    """
    import pandas as pd

    last = {"labels_last": 2}
    meka = numeric("1,0,1.5,-2,a\n0,1,1e3,?,b\n1,1,0,0,'c'\n")
    sparse = numeric("{0 1,2 3.5}\n{}\n{1 1,4 b,3 -1}\n{0 1,1 1,2 2,3 3,4 c}\n")
    dense = {"label_columns": ["sun", "rain's end"]}
    tags = {"tags": "tags", "plan": True}
    items = pd.DataFrame({"id": [7, 7, 8, 9], "size": [1, 1, None, 3], "tag": ["war", "noir", "drama", "war"]})
    lists = [["war", "drama"], ["war"], [], ["drama"], ["war", "noir"]]
    west = QUOTED.replace("Łódź", "Málaga").encode("cp1252")
    return {
        "arff dense": ("a.arff", DENSE.encode(), dense),
        "arff meka": ("a.arff", meka.encode(), {}),
        "arff sparse": ("a.arff", sparse.encode(), {}),
        "xml": ("a.xml", XML.replace("hail", "dry").encode(), {}),
        "mat plain": ("a.mat", mat(), {}),
        "mat compressed": ("a.mat", mat(compressed=True), {}),
        "mat sparse": ("a.mat", mat(sparse=True), {}),
        "mat 4": ("a.mat", mat(version="4"), {}),
        "csv": ("a.csv", CSV.encode(), last),
        "csv quoted": ("a.csv", QUOTED.encode(), last),
        "tsv": ("a.tsv", CSV.replace(",", "\t").encode(), last),
        "semicolons": ("a.csv", CSV.replace(",", ";").encode(), last),
        "decimal commas": ("a.csv", COMMAS.encode("utf-8-sig"), {**last, "decimal": ","}),
        "no header": ("a.csv", CSV.partition("\n")[2].replace("\n", "\r\n").encode(), {**last, "header": False}),
        "lines to skip": ("a.csv", RAGGED.encode(), {**last, "on_bad_lines": "skip"}),
        "cp1252": ("a.csv", west, {**last, "encoding": "cp1252"}),
        "svmlight": ("a.svm", SVM.encode(), {}),
        "xc": ("a.txt", XC.encode(), {}),
        "parquet": ("a.parquet", typed("parquet", index=False), last),
        "parquet plain": ("a.parquet", typed("parquet", index=False, compression=None, use_dictionary=False), last),
        "feather": ("a.feather", typed("feather", compression="lz4"), last),
        "feather plain": ("a.feather", typed("feather", compression="uncompressed"), last),
        "json": ("a.json", people().to_json(orient="records", force_ascii=False).encode(), tags),
        "json lines": ("a.jsonl", people().assign(tags=lists).to_json(orient="records", lines=True).encode(), tags),
        "tags": ("a.csv", people().to_csv(index=False).encode(), tags),
        "items": ("a.tsv", items.to_csv(index=False, sep="\t").encode(), {"item": "id", "tag": "tag", "plan": True}),
        "utf-16": ("a.txt", people().to_csv(index=False, sep="\t").encode("utf-16"), tags),
        **({"excel": ("a.xlsx", excel(), tags)} if find_spec("openpyxl") else {}),
    }


# ---- one change ----


def _position(rng: Random, content: bytes) -> int:
    return rng.randrange(len(content) + 1)


def _slice(rng: Random, content: bytes) -> tuple[int, int]:
    start = _position(rng, content)
    return start, min(len(content), start + rng.choice([1, 2, 4, 8, 40, 400]))


def _flip(rng: Random, content: bytes) -> bytes:
    i = rng.randrange(len(content))
    return content[:i] + bytes([content[i] ^ 1 << rng.randrange(8)]) + content[i + 1 :]


def _set(rng: Random, content: bytes) -> bytes:
    i = rng.randrange(len(content))
    return content[:i] + bytes([rng.randrange(256)]) + content[i + 1 :]


def _delete(rng: Random, content: bytes) -> bytes:
    start, stop = _slice(rng, content)
    return content[:start] + content[stop:]


def _repeat(rng: Random, content: bytes) -> bytes:
    start, stop = _slice(rng, content)
    return content[:stop] + content[start:stop] * rng.choice([1, 2, 50]) + content[stop:]


def _move(rng: Random, content: bytes) -> bytes:
    start, stop = _slice(rng, content)
    i = _position(rng, content)
    return content[:i] + content[start:stop] + content[i:]


def _insert(rng: Random, content: bytes) -> bytes:
    i = _position(rng, content)
    return content[:i] + rng.choice(TOKENS) + content[i:]


def _overwrite(rng: Random, content: bytes) -> bytes:
    token = rng.choice(TOKENS)
    i = _position(rng, content)
    return content[:i] + token + content[i + len(token) :]


def _noise(rng: Random, content: bytes) -> bytes:
    i = _position(rng, content)
    return content[:i] + rng.randbytes(rng.choice([1, 3, 16])) + content[i:]


def _truncate(rng: Random, content: bytes) -> bytes:
    return content[: _position(rng, content)]


def _lines(rng: Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = rng.choice([(lines[j], lines[i]), (lines[i], lines[i]), (b"", lines[j])])
    return b"\n".join(lines)


def _integer(rng: Random, content: bytes) -> bytes:
    i = min(rng.randrange(0, len(content), 4), max(0, len(content) - 4))
    return content[:i] + struct.pack(rng.choice("<>") + "i", rng.choice(EXTREMES)) + content[i + 4 :]


def _number(rng: Random, content: bytes) -> bytes:
    numbers = list(re.finditer(rb"\d+", content))
    if not numbers:
        return _set(rng, content)
    chosen = rng.choice(numbers)
    value = rng.choice([*map(str, EXTREMES), "7" * 30, "1e-400", "", "1000000"])
    return content[: chosen.start()] + value.encode() + content[chosen.end() :]


def _swap(rng: Random, content: bytes) -> bytes:
    old, new = (rng.choice([b",", b" ", b":", b"0", b"1", b"\n", b"'", b'"', b"\x00\x00\x00\x00"]) for _ in range(2))
    return content.replace(old, new, rng.choice([1, 3, -1]))


CHANGES: list[Callable[[Random, bytes], bytes]] = [
    _flip, _set, _delete, _repeat, _move, _insert, _overwrite, _noise, _truncate, _lines, _integer, _number, _swap,
]  # fmt: skip


def changed(rng: Random, content: bytes) -> bytes:
    """Return the content after one to three random changes."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        if content:
            content = rng.choice(CHANGES)(rng, content)
    return content


def _recompressed(rng: Random, content: bytes) -> bytes:
    """Change what is inside one compressed variable of a .mat file, so that its checksum is right."""
    header, rest, parts = content[:128], content[128:], []
    while rest:
        kind, size = struct.unpack_from("<II", rest)
        parts.append((kind, rest[8 : 8 + size]))
        rest = rest[8 + size :]
    chosen = rng.randrange(len(parts))
    inner = zlib.decompress(parts[chosen][1])
    parts[chosen] = (parts[chosen][0], zlib.compress(changed(rng, inner)))
    return header + b"".join(struct.pack("<II", kind, len(body)) + body for kind, body in parts)


PACKS: list[Callable[[bytes], bytes]] = [lambda content: gzip.compress(content, mtime=0), bz2.compress, lzma.compress]


def _rezipped(rng: Random, content: bytes) -> bytes:
    """Change a member of a zip archive, most often the sheet."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as archive,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as changed_one,
    ):
        names = archive.namelist()
        sheet = next(name for name in names if "sheet1" in name)
        chosen = sheet if rng.random() < 0.8 else rng.choice(names)
        for name in names:
            member = archive.read(name)
            changed_one.writestr(name, changed(rng, member) if name == chosen else member)
    return buffer.getvalue()


def mutant(kind: str, number: int, content: bytes) -> bytes:
    """Return the changed file ``number`` of a kind; the same for ever.

    One of four is compressed, and changed before or after.
    """
    rng = Random(f"{kind} {number}")
    pack = rng.choice(PACKS) if rng.random() < 0.25 else None
    if pack and rng.random() < 0.5:
        return changed(rng, pack(content))
    if kind == "excel" and rng.random() < 0.8:
        content = _rezipped(rng, content)
    elif kind == "mat compressed" and rng.random() < 0.5:
        content = _recompressed(rng, content)
    else:
        content = changed(rng, content)
    return pack(content) if pack else content
