"""Plain technical English: words and identifiers that have been retired do not come back.

``RETIRED`` maps a regular expression to what to write instead; ``ALLOWED`` are standard terms in which such a word is
right. ``python tests/project/test_language.py`` prints what it finds in every file, by package.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

# Anywhere: in code, docstrings, messages, settings, templates and documentation.
RETIRED = {
    r"\b(?:asked|asks)\b|_asked\b|\basked_": "requested, requires; of a model: predict; of a check: description",
    r"\b(?:told|tells|said|heard)\b|_(?:told|said|heard)\b": "message, verdict, reports, caught",
    r"\bbeside\b|_beside\b|\bbeside_": "next to, in addition, together with, in parallel; extra columns",
    r"\bplaces?\b|_places?\b|\bplaces?_": "index, position, location, path",
    r"\bwords\b|_words\b|\bwords_|\bWords\b": "arguments, labels, text",
    r"\bwhole\b|\bwhole_": "complete, valid, full, entire",
    r"\bst(?:ands?|ood|anding) (?:on|for|in|beside)\b": "depends on, represents, is in, is next to",
    r"\b(?:the|in|of this)[ _]print\b|\bheld against\b": "the paper, published value, compared with",
    r"\banew\b": "again; recomputed, regenerated",
    r"\bso (?:many|often)\b": "n times, n_repeats",
    r"\b(?:training|test) parts?\b": "training set, test set",
    r"\bdivisions\b|\bdivision of (?:the rows|lwmf)\b": "split, fold",
    r"\bcolumn sets?\b|\bcolumn_sets?\b|\bColumnSets?\b": "variant",
    r"\bguards\b": "gate_cases",
    r"\brooms?\b|\bhouse\b|_rooms?\b|_ROOMS\b": "package, architecture",
    r"\bfloors?\b|\bground\b": "layer, core",
    r"\bof (?:ours|yours|mine)\b|\bfor people\b|\bby hand\b": "our, your, display name, manual, ad hoc",
    r"\bmend(?:ed|s|ing)?\b": "fix, fixed",
    r"\bprocess(?:es)? of (?:its|their) own\b": "run in a separate process",
    r"\bpredict_both\b|\b_fit_checked\b": "predict_with_scores, _fit_validated",
    r"\bstrength_max\b|\bviolations?\b": "alpha_max, kkt_residual",
    r"\bpictures?\b|_pictures?\b|\bPictures?\b|\bdrawings?\b": "figure, style",
    r"\bdoes not dare\b|\bgrowth is over\b|\bthey tell of\b|\b[Oo]ne door\b|\b(?:go|goes|going|went|gone) through\b": (
        "keeps frozen, stopped, relevance to Y, dispatch, iterate"
    ),
}
# Names in Python code.
RETIRED_NAMES = {"found": "the thing: rows, table, estimator", "_told": "message, describe", "_beside": "extra"}
# Keys of method and study files.
RETIRED_KEYS = {
    "guards": "gate_cases",
    "keep": "save_attributes",
    "small": "check_params",
    "inner": "inner_cv",
    "repeats": "repetitions",
    "columns": "variants",
    "place": "location",
}
ALLOWED = re.compile(
    r"""decimal\ places?|in-?\ ?place\b|(?:first|second|third|last)\ places?|take[sn]?\ place|place-?holder|places=\d
    |(?:random|frequent|binary|\d+)\ words|words\ of\ its\ own|whole\ numbers?|ground\ truth
    |np\.floor|math\.floor|floor\(|floor\ division|_floor\b|floor_divide
    |division\ by\ zero|password|in\ other\ words""",
    re.VERBOSE,
)

# What is checked; a package is listed as soon as it is clean.
CLEAN: tuple[str, ...] = (
    *(
        "__init__",
        "__main__",
        "audit",
        "papers",
        "claims",
        "cli",
        "commands",
        "core",
        "datasets",
        "experiments",
        "leaderboard",
        "methods",
        "metrics",
        "model_selection",
        "reports",
        "stages",
        "statistics",
        "testing",
    ),
    *("conf", "docs", "benchmarks", "scripts", ".github", "tests"),
    *("README.md", "CHANGELOG.md", "ROADMAP.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"),
)
SUFFIXES = {".py", ".md", ".yaml", ".yml", ".j2", ".toml", ".rst", ".sh", ".css", ".cff", ".html"}


def packages() -> dict[str, list[Path]]:
    """Return the files of each package and folder that the rules hold for."""
    groups: dict[str, list[Path]] = {}
    for folder in sorted((CHECKOUT / "src" / "multilab").iterdir()):
        if folder.name != "__pycache__":
            groups[folder.name.removesuffix(".py")] = files(folder)
    for folder in ("conf", "docs", "benchmarks", "scripts", ".github", "tests"):
        groups[folder] = files(CHECKOUT / folder)
    for file in ("README.md", "CHANGELOG.md", "ROADMAP.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"):
        groups[file] = files(CHECKOUT / file)
    return groups


def files(path: Path) -> list[Path]:
    """Return the text files in a folder, without what is generated and without this file."""
    if path.is_file():
        return [path]
    skipped = {"_build", "gallery", "generated", "__pycache__"}
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix in SUFFIXES and not skipped & set(file.parts) and file != Path(__file__).resolve()
    ]


def problems(path: Path) -> list[tuple[str, str]]:
    """Return the retired words of a file, each with its line and what to write instead."""
    text = path.read_text(encoding="utf-8")
    where = path.relative_to(CHECKOUT)
    result = []
    for number, line in enumerate(text.splitlines(), 1):
        kept = ALLOWED.sub("", line)
        for pattern, instead in RETIRED.items():
            result += [(hit[0], f"{where}:{number}: {hit[0]!r}: {instead}") for hit in re.finditer(pattern, kept)]
        if "conf" in where.parts and {"method", "study"} & set(where.parts):
            key = re.match(r"\s*(?:- )?(\w+):", line)
            if key and key[1] in RETIRED_KEYS:
                result.append((f"{key[1]}:", f"{where}:{number}: key {key[1]!r}: {RETIRED_KEYS[key[1]]}"))
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string in RETIRED_NAMES:
                line = f"{where}:{token.start[0]}: name {token.string!r}: {RETIRED_NAMES[token.string]}"
                result.append((token.string, line))
    return result


@pytest.mark.parametrize("package", CLEAN)
def test_no_retired_word_comes_back(package: str) -> None:
    found_in = [line for path in packages()[package] for _, line in problems(path)]
    assert found_in == [], "\n".join(found_in)


def test_the_rules_find_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "CHECKOUT", tmp_path)
    file = tmp_path / "x.py"
    file.write_text('found = 1\n"""What it is asked, beside the print; to two decimal places, in place."""\n')
    assert sorted(word for word, _ in problems(file)) == ["asked", "beside", "found", "the print"]


def test_every_package_is_checked() -> None:
    assert set(CLEAN) <= set(packages())


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for name, paths in packages().items():
        hits = [hit for path in paths for hit in problems(path)]
        if wanted and name in wanted:
            print("\n".join(line for _, line in hits))
        elif not wanted:
            print(f"{name:<16}{len(hits):>6}  {dict(Counter(word.lower() for word, _ in hits).most_common(12))}")
