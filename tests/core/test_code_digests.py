"""Digests of code: what moves them, what does not, and that all supported versions of Python agree."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.code_copy import forget
from multilab.core import code_digest, code_digests, definition_digest
from multilab.core.syntax import parse_code

FILE = '''
"""Docstring."""
from __future__ import annotations
import numpy as np, scipy.sparse
from typing import TYPE_CHECKING
from .other import helper as h
if TYPE_CHECKING:
    from a import B
__all__ = ["f"]
LIMIT: int = 0x10
class C(Base, metaclass=M):
    """Docstring."""
    x = 1_000.0; y = 1j; z = b"\\x00"; e = ...
    @property
    async def p(self, a, /, b: "int" = 1, *args: int, c, d=None, **more) -> list[int]:
        return [await i async for i in g(*args, **more) if i not in (1, "\\u00e9\\U0001f600")]
def f(x):
    try:
        with open(x) as a, b: ...
    except* (KeyError, ValueError) as error:
        raise TypeError(f"{x} must be " "positive", x, key="a") from error
    else:
        pass
    finally:
        del x[1:2, ::3]
    while (n := next(x)) > 1 < 2: x @= lambda *a, **k: {**a, "b": {1}, 2: (yield)}
    match x:
        case {"a": [1, *rest], **others} | C(y=2) as q if q: return f"{x!r:>{w}} a{{b}}" "c" f"{x=}" f"{x:%Y-%m}"
        case _: global z
    return -x if x else not x, h.a.b[...], u"text" rb"" if 0 else 'it''s'
'''.replace(' rb""', "")

FILE_DIGEST = "061b7f5a6299fca7ec95b38a4e56469997c5d0ea863409e0eeb844245636995e"


def text_digest(content: str) -> str:
    """Return the digest of what counts in keys: syntax tree and imports."""
    return hashlib.sha256(repr(parse_code(content.encode(), "multilab.methods")[:2]).encode()).hexdigest()


def test_the_digest_of_one_file_is_this_constant():
    assert text_digest(FILE) == FILE_DIGEST


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("files", ["core/*.py", pytest.param("**/*.py", marks=pytest.mark.slow)])  # all: 10 s each
def test_all_supported_versions_of_python_agree(version, files, checkout):
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    python = str(installed[-1]) if installed else shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"Python {version} is not installed here")
    code = (
        "import hashlib, pathlib, sys; sys.path.insert(0, sys.argv[1] + '/core'); import syntax\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob(sys.argv[2])):\n"
        "    print(path, hashlib.sha256(repr(syntax.parse_code(path.read_bytes(), 'a.b')).encode()).hexdigest())\n"
        "text = sys.stdin.buffer.read()\n"
        "print(hashlib.sha256(repr(syntax.parse_code(text, 'multilab.methods')[:2]).encode()).hexdigest())"
    )
    package = checkout / "src" / "multilab"
    run = subprocess.run(
        [python, "-I", "-c", code, str(package), files], input=FILE.encode(), capture_output=True, check=True
    )
    *others, file_digest = run.stdout.decode().splitlines()
    assert file_digest == FILE_DIGEST
    here = sorted(package.glob(files))
    digests = [hashlib.sha256(repr(parse_code(path.read_bytes(), "a.b")).encode()).hexdigest() for path in here]
    assert others == [f"{path} {digest}" for path, digest in zip(here, digests, strict=True)]


BASE = """from multilab.methods.shared import VALUE


def f(x):
    if x < 0:
        raise ValueError('no')
    return x
"""


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"""Doc."""\nfrom multilab.methods.shared import VALUE\n' + BASE.partition("\n")[2], True),
        (BASE + '\n__all__ = ["f"]\n', True),
        (BASE.replace("'no'", "f'no {x}'"), True),
        (BASE.replace("ValueError('no')", "TypeError('no')"), False),
        (BASE.replace("'no'", "x"), False),
        (BASE.replace("return x", "return (\n        x  # a comment\n    )"), True),
        (BASE.replace("return x", "'''a comment'''\n    pass\n    return x"), True),
        (BASE.replace("return x", "return 'x'"), False),
        (BASE.replace("return x", "return +x"), False),
        (BASE.replace("import VALUE", "import VALUE as OTHER"), False),
        (BASE.replace("import VALUE", "import OTHER"), False),
        ("def f(x):\n    from multilab.methods.shared import VALUE\n" + BASE.partition("def f(x):\n")[2], True),
        (BASE.replace("import VALUE", "import VALUE\nimport os"), False),
        ("if TYPE_CHECKING:\n    import os\n" + BASE, True),
        (BASE.replace("multilab.methods.shared", ".shared"), True),
        (BASE.replace("multilab.methods.shared", "multilab.methods.copy_of_shared"), True),
        (BASE.replace("multilab.methods.shared", "multilab.methods.other"), False),
        (BASE.replace("multilab.methods.shared", "multilab.core.shared"), False),
        (BASE.replace("multilab.methods.shared", "numpy"), False),
    ],
)
def test_what_moves_a_digest(package, text, same):
    before = digest(package, {"a": BASE})
    assert (digest(package, {"a": text}) == before) == same


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package like multilab with a few modules."""
    root = tmp_path / "multilab"
    for name in ("core", "methods/deep"):
        (root / name).mkdir(parents=True)
    write(root, {"shared": "VALUE = 1\n", "copy_of_shared": '"""Copy."""\nVALUE = 1\n', "other": "VALUE = 2\n"})
    monkeypatch.setattr(code_digests, "_PACKAGE", root)
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path))
    yield root
    forget()


def write(root, files):
    for name, text in files.items():
        (root / "methods" / f"{name}.py").write_text(text)


def digest(root, files, module="a", within="multilab.methods"):
    """Write some modules and return the digest of one, as a new process finds it."""
    write(root, files)
    forget()
    return code_digest(f"multilab.methods.{module}", within=within)


def test_of_an_import_that_is_not_followed_the_name_counts_and_not_the_module(package):
    texts = [BASE.replace("methods.shared", "core.one"), BASE.replace("methods.shared", "core.two")]
    for name in ("one", "two"):
        (package / "core" / f"{name}.py").write_text(f"VALUE = {name!r}\n")
    assert digest(package, {"a": texts[0]}) == digest(package, {"a": texts[1]})
    assert digest(package, {"a": texts[0].replace("VALUE", "OTHER")}) != digest(package, {"a": texts[1]})


def test_a_file_that_is_renamed_or_moved_moves_no_digest(package):
    before = digest(package, {"a": BASE})
    (package / "methods" / "shared.py").rename(package / "methods" / "deep" / "_moved.py")
    assert digest(package, {"a": BASE.replace("methods.shared", "methods.deep._moved")}) == before
    (package / "methods" / "a.py").rename(package / "methods" / "deep" / "b.py")
    assert digest(package, {}, "deep.b") == before
    write(package, {"deep/_moved": "VALUE = 3\n"})
    assert digest(package, {}, "deep.b") != before


CIRCLE = {
    "a": "from multilab.methods.b import g\ndef f(): return g\n",
    "b": "from multilab.methods.c import h\ndef g(): return h\n",
    "c": "from multilab.methods.a import f\nfrom multilab.methods.shared import VALUE\ndef h(): return f\n",
}


def test_files_that_import_each_other_are_digested_as_one_group(package):
    before = {name: digest(package, CIRCLE, name) for name in CIRCLE}
    assert len(set(before.values())) == 3
    renamed = {
        {"b": "late", "a": "a", "c": "c"}[n]: t.replace("methods.b ", "methods.late ") for n, t in CIRCLE.items()
    }
    assert digest(package, renamed) == before["a"], "the name of a file of the circle does not count"
    for edited in CIRCLE:
        text = CIRCLE[edited].replace("return ", "return 1 + ")
        assert all(digest(package, CIRCLE | {edited: text}, name) != before[name] for name in CIRCLE)
    write(package, {"shared": "VALUE = 3\n"})
    assert all(digest(package, CIRCLE, name) != before[name] for name in CIRCLE)


def test_the_digest_does_not_depend_on_what_was_digested_before(package):
    alone = {name: digest(package, CIRCLE, name) for name in CIRCLE}
    for first in CIRCLE:
        digest(package, CIRCLE, first)
        again = {name: code_digest(f"multilab.methods.{name}", within="multilab.methods") for name in CIRCLE}
        assert again == alone


METRIC = """from multilab.metrics.counts import ratio, unused
from multilab.metrics.registry import metric
import numpy as np

_SHIFT = 1


@metric("A", source="x")
def first(counts):
    return _helper(ratio(counts))


@metric("B")
def second(counts):
    return unused(counts)


def _helper(value):
    if value > 0:
        value = _other(value)
    return value + _SHIFT


def _other(value):
    return np.abs(value)


class Kind:
    def low(self):
        return _other(0)

    def high(self):
        return 1
"""


@pytest.fixture
def metric_digest(package):
    """A function that writes modules of ``multilab.metrics`` and returns the digest of one definition."""
    (package / "metrics").mkdir()

    def of(text=METRIC, name="first", **others):
        files = {"m": text, "counts": "def ratio(c): ...\ndef unused(c): ...\n", "registry": "def metric(*a): ...\n"}
        for stem, content in (files | others).items():
            (package / "metrics" / f"{stem}.py").write_text(content)
        forget()
        return definition_digest(f"multilab.metrics.m.{name}", "multilab.metrics")

    return of


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("_helper(ratio(counts))", "-_helper(ratio(counts))", {"first"}),
        ('"A", source', '"C", source', {"first"}),
        ("return unused(counts)", "return -unused(counts)", {"second"}),
        ("value + _SHIFT", "value - _SHIFT", {"first"}),
        ("_SHIFT = 1", "_SHIFT = 2", {"first"}),
        ("np.abs(value)", "np.sign(value)", {"first", "Kind.low"}),
        ("return _other(0)", "return _other(1)", {"Kind.low"}),
        ("class Kind:", "@metric('D')\ndef third(counts):\n    return _SHIFT\n\n\nclass Kind:", set()),
        ("class Kind:", "np.seterr(all='raise')\n\n\nclass Kind:", {"first", "second", "Kind.low", "Kind.high"}),
        ("class Kind:", "_TABLE = {}\n_TABLE['a'] = 1\n\n\nclass Kind:", set()),
        ("class Kind:", "_helper.flag = 1\n\n\nclass Kind:", {"first"}),
        ("class Kind:", "if True:\n    _SHIFT = 2\n\n\nclass Kind:", {"first", "second", "Kind.low", "Kind.high"}),
        ("import numpy as np", "import scipy as np", {"first", "Kind.low"}),
        ("return unused(counts)", "'''Doc.'''\n    return (unused(counts))  # why", set()),
    ],
)
def test_the_digest_of_a_definition_covers_what_it_uses_and_no_other(metric_digest, old, new, moved):
    names = ("first", "second", "Kind.low", "Kind.high")
    before = {name: metric_digest(name=name) for name in names}
    assert METRIC.count(old) == 1
    after = {name: metric_digest(METRIC.replace(old, new), name) for name in names}
    assert {name for name in names if before[name] != after[name]} == moved


def test_the_digest_of_a_definition_covers_the_modules_it_imports(metric_digest):
    before = metric_digest(), metric_digest(name="Kind.high")
    counts = "def ratio(c): return 1\ndef unused(c): ...\n"
    assert metric_digest(counts=counts) != before[0]
    assert metric_digest(name="Kind.high", counts=counts) == before[1]


def test_an_import_of_a_metric_leads_to_this_metric_alone(package, metric_digest):
    def of(text):
        metric_digest(text)
        return digest(package, {"a": "from multilab.metrics.m import first\n"}, within="multilab")

    before = of(METRIC)
    assert of(METRIC.replace("return unused(counts)", "return -unused(counts)")) == before
    assert of(METRIC.replace("value + _SHIFT", "value - _SHIFT")) != before


@pytest.mark.parametrize(
    ("text", "environment", "unseen"),
    [
        ("import os\nx = os.environ['A'] + os.environ.get('B', '1') + os.getenv('C')", ["A", "B", "C"], []),
        ("from os import environ as e, getenv\nx = e['A'], getenv(key='B'), 'C' in e, e.pop('D')", list("ABCD"), []),
        ("import os\ndef f():\n    return os.environ.setdefault('A', '1')", ["A"], []),
        ("import os\nos.environ['A'] = '1'\nos.environ.update(B='1')\ndel os.environ['C']", [], []),
        ("import os\nx = os.environ[name]", [], ["line 2 reads the environment by a computed name"]),
        ("import os\n\nx = g('A', dict(os.environ))", [], ["line 3 reads the environment by a computed name"]),
        ("import os\nfor name in os.environ: ...", [], ["line 2 reads the environment by a computed name"]),
        ("import os\nf = os.getenv", [], ["line 2 reads the environment by a computed name"]),
        ("x = open('a.csv').read()", [], ["line 1 opens a file"]),
        ("import numpy as np\nx = np.load(path)\ny = np.abs(x)", [], ["line 2 opens a file"]),
        ("import pandas as pd\nx = pd.read_csv('a')", [], ["line 2 opens a file"]),
        ("from pathlib import Path\nx = Path('a').read_text()", [], ["line 2 opens a file"]),
        ("import importlib\nm = importlib.import_module('a.b')", [], []),
        ("import importlib\nm = importlib.import_module(f'a.{b}')", [], ["line 2 imports a module by a computed name"]),
        ("exec(text)", [], ["line 1 runs code with exec()"]),
        ("x = frame.eval('a + b')", [], []),
    ],
)
def test_what_a_file_reads_while_it_runs(text, environment, unseen):
    code = parse_code(text.encode(), "a")
    assert (code.environment, code.unseen) == (environment, unseen)


def test_a_module_imported_by_a_literal_name_is_an_import():
    assert ("a.b", "") in parse_code(b"import importlib\nm = importlib.import_module('a.b')", "c").imports
