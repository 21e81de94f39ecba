"""Submissions: content of an archive, refusals before anything is executed, and differences after recomputation."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import shutil
import stat
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from multilab.arena import ArenaError, read_submission
from multilab.arena.submissions.method_source import check_dependencies, read_source
from multilab.cli import main
from multilab.commands.arena import recomputing, submitting, verifying
from multilab.experiments import own_settings
from multilab.experiments.limits import CellLimits
from multilab.experiments.shared_cells import with_reads
from multilab.experiments.store import Store
from multilab.experiments.workers import run_cells

pytest.importorskip("hydra")

STUDY = """
title: Tiny
description: A test.
datasets: [genes-toy, topics-toy]
methods: [mlknn, label_frequencies]
protocol: {kfold: 2, stratify: 1, seed: 0}
metrics: [ranking_loss]
headline: ranking_loss
"""
HEAD = "# SPDX-FileCopyrightText: 2026 Ada Example\n# SPDX-License-Identifier: BSD-3-Clause\n"
ARCHIVE = "submissions/ridge_labels.zip"


class Author:
    """A folder with a method of one's own, a study, and a store of cells."""

    def __init__(self, root: Path) -> None:
        self.root, self.code = root, root / "ridge_labels.py"
        self.settings = root / "conf" / "method" / "ridge_labels.yaml"

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(self.root)
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(own_settings, "_named", {})
        monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        monkeypatch.setenv("MULTILAB_CELLS", str(self.root / "cells"))
        monkeypatch.setenv("MULTILAB_JOBS", "1")
        sys.modules.pop("ridge_labels", None)
        importlib.invalidate_caches()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of an author who has submitted; copied for each test."""
    root = tmp_path_factory.mktemp("author")
    author = Author(root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        author.enter(monkeypatch)
        (root / "conf" / "study").mkdir(parents=True)
        (root / "conf" / "study" / "tiny.yaml").write_text(STUDY)
        assert main(["new", "method", "ridge_labels", "--outside"]) == 0
        author.code.write_text(HEAD + author.code.read_text())
        assert main(["arena", "submit", "ridge_labels", "study=tiny", "--fit"]) == 0
    return root


@pytest.fixture
def author(made, tmp_path, monkeypatch):
    author = Author(shutil.copytree(made, tmp_path / "author"))
    author.enter(monkeypatch)
    yield author
    sys.modules.pop("ridge_labels", None)


@pytest.fixture
def judge(made, tmp_path, monkeypatch):
    """Another folder, with the study and an archive; recomputations stay in this process."""
    judge = Author(tmp_path / "judge")
    shutil.copytree(made / "conf" / "study", judge.root / "conf" / "study")
    shutil.copytree(made / "submissions", judge.root / "submissions")
    judge.enter(monkeypatch)

    def recompute(study, settings, cells, store):
        monkeypatch.syspath_prepend(str(settings.parents[2]))
        return run_cells(with_reads(list(cells)), Store(store))

    monkeypatch.setattr(verifying, "recompute_apart", recompute)
    yield judge
    sys.modules.pop("ridge_labels", None)


def refusal(argv: list[str], capsys, code: int = 2) -> str:
    """Return the one line with which a command is refused."""
    capsys.readouterr()
    assert main(argv) == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def contents(path: str = ARCHIVE) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repack(changes: dict[str, bytes], manifest: dict | None = None, sign: bool = True) -> None:
    """Replace files of the archive; ``sign`` adapts the digests in the manifest, as a forger would."""
    files = contents() | changes
    described = json.loads(contents()["manifest.json"]) | (manifest or {})
    if sign:
        named = {name: content for name, content in files.items() if name != "manifest.json"}
        described["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in named.items()}
    if "manifest.json" not in changes:
        files["manifest.json"] = json.dumps(described).encode()
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def changed_table(name: str, change) -> dict[str, bytes]:
    table = pd.read_csv(io.BytesIO(contents()[name]))
    return {name: change(table).to_csv(index=False).encode()}


def test_an_archive_has_everything_and_the_same_bytes(author, capsys):
    first = Path(ARCHIVE).read_bytes()
    assert main(["arena", "submit", "ridge_labels", "study=tiny"]) == 0
    assert "2 data sets, 2 cells" in capsys.readouterr().out
    assert Path(ARCHIVE).read_bytes() == first
    submission = read_submission(ARCHIVE)
    manifest = submission.manifest
    assert (manifest.name, manifest.study, manifest.splits, manifest.level) == ("ridge_labels", "tiny", "first", "L1")
    assert (manifest.licence, manifest.authors) == ("BSD-3-Clause", "2026 Ada Example")
    assert set(manifest.search_space) == {"alpha"}
    assert set(manifest.versions) == {"python", "multilab", "numpy", "scipy", "scikit-learn"}
    assert submission.code == author.code.read_text()
    assert submission.settings == author.settings.read_text()
    assert list(submission.cells["dataset"]) == ["genes-toy", "topics-toy"]
    assert {"macro_f1", "norm of scores"} <= set(submission.scores["metric"])
    folder = author.root / "folder"
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    (folder / "verified.json").write_text("{}")
    assert read_submission(folder).digest == submission.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# SPDX-License-Identifier: BSD-3-Clause\n", "", "must name your licence, there is none"),
        ("BSD-3-Clause", "do what you want, please!", "must name your licence, not 'do what"),
        ("# SPDX-FileCopyrightText: 2026 Ada Example\n", "", "no author; add a line"),
        ("import numpy as np", "import numpy as np\nimport torch", "'torch' is imported but not declared"),
        ("import numpy as np", "import numpy as np\nimport helpers_of_mine", "or move its code here"),
        ("import numpy as np", "import numpy as np\nfrom . import other", "a relative import"),
        (
            "import numpy as np",
            "import numpy as np\n# /// script\n# dependencies = ['numpy']\n# ///",
            "names no version",
        ),
        ("import numpy as np", "import numpy as np\n# /// script\n# dependencies = [\n# ///", "is not valid"),
        ("import numpy as np", "import numpy as np\n# /// script\n# dependencies = ['pip==0.1']\n# ///", "here it is"),
        ("import numpy as np", "import numpy as np\n(", "not valid Python"),
        (
            "alpha: float = 1.0",
            "alpha: float = 2.0",
            "2 of 2 cells of ridge_labels are not finished, 2 in the store are",
        ),
    ],
)
def test_what_is_missing_is_named_when_a_method_is_submitted(author, capsys, old, new, message):
    text = author.code.read_text()
    assert old in text
    author.code.write_text(text.replace(old, new))
    assert message in refusal(["arena", "submit", "ridge_labels", "study=tiny"], capsys)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("x = __import__('torch')", "__import__"),
        ("f = __import__", "__import__"),
        ("exec('import torch')", "exec"),
        ("eval('torch')", "eval"),
        ("compile('import torch', '', 'exec')", "compile"),
        ("multilab.core.lazy.importlib.import_module('torch')", "import_module"),
        ("__builtins__['__import__']('torch')", "__builtins__"),
        ("from importlib import import_module as f", "importlib"),
        ("import importlib.util", "importlib"),
        ("import runpy", "runpy"),
        ("import builtins as b", "builtins"),
    ],
)
def test_what_imports_without_an_import_statement_is_refused(line, name):
    with pytest.raises(ArenaError, match=rf"mine.py, line 3: {name} hides what is imported; write an import statement"):
        read_source("mine", f"{HEAD}{line}\n", "_target_: mine.Mine\n")


def test_methods_called_as_functions_that_import_are_accepted():
    code = HEAD + "import re\nre.compile('a')\nmodel.eval()\ntable.eval('a + b')\n"
    assert read_source("mine", code, "_target_: mine.Mine\n").licence == "BSD-3-Clause"


def test_a_method_of_the_package_or_without_cells_is_refused(author, capsys):
    assert "mlknn is in the package already" in refusal(["arena", "submit", "mlknn", "study=tiny"], capsys)
    shutil.rmtree(author.root / "cells")
    assert "2 of 2 cells of ridge_labels are not finished" in refusal(
        ["arena", "submit", "ridge_labels", "study=tiny"], capsys
    )
    assert "4 of 4 cells" in refusal(["arena", "submit", "ridge_labels", "study=tiny", "--full"], capsys)
    assert "L1 (closed forms" in refusal(["arena", "submit", "ridge_labels", "level=L3"], capsys)
    assert "expected: multilab arena submit" in refusal(["arena", "submit"], capsys)
    broken = author.code.read_text().replace("if not self.alpha", "raise ValueError('no')\n        if not self.alpha")
    author.code.write_text(broken)
    assert "no result: ValueError: no" in refusal(["arena", "submit", "ridge_labels", "study=tiny", "--fit"], capsys)


def test_declared_dependencies_are_read_and_checked():
    code = (
        HEAD + '# /// script\n# dependencies = ["scikit_learn==1.0", "Some.Thing[x]==2.1"]\n# ///\nimport some_thing\n'
    )
    source = read_source("mine", code, "_target_: mine.Mine\n")
    assert source.dependencies == {"scikit_learn": "1.0", "Some.Thing": "2.1"}
    with pytest.raises(
        ArenaError, match=r"scikit_learn==1.0 is declared, here it is .*: pip install scikit_learn==1.0"
    ):
        check_dependencies({"scikit_learn": "1.0"})
    with pytest.raises(ArenaError, match="'lightgbm' is imported but not declared"):
        read_source("mine", HEAD, "_target_: mine.Mine\nestimator: {_target_: lightgbm.LGBMClassifier}\n")
    settings_only = HEAD + "_target_: sklearn.dummy.DummyClassifier\n"
    assert read_source("mine", "", settings_only).licence == "BSD-3-Clause"


def test_a_submission_is_verified_stamped_and_ranked(judge, capsys):
    commit_scores(judge, lambda table: table.assign(value=table["value"].where(table["metric"] != "macro_f1", 0)))
    assert main(["arena", "verify", ARCHIVE, "sample=1", "seed=3", "markdown=comment.md"]) == 0
    printed = capsys.readouterr().out
    assert "verified: 1 of 2 cells recomputed (seed 3), compared at L1 (1e-06)" in printed
    assert "recomputing runs the submitted code" in printed
    assert "ridge_labels would be number 1 of 2" in printed
    stamp = json.loads((judge.root / "submissions" / "ridge_labels.verified.json").read_text())
    assert stamp["result"] == "verified"
    assert stamp["submission"] == read_submission(ARCHIVE).digest
    assert len(stamp["cells"]) == stamp["same_bits"] == 1
    assert {"commit", "date", "machine", "versions", "seed", "tolerance"} <= set(stamp)
    comment = (judge.root / "comment.md").read_text()
    assert comment.startswith("### Arena: `ridge_labels` **verified**")
    assert "| **ridge_labels** |" in comment


def commit_scores(judge: Author, change=lambda table: table) -> None:
    """Commit the scores of the archive, changed, as those of another method."""
    table = pd.read_csv(io.BytesIO(contents()["scores.csv"]))
    folder = judge.root / "reports" / "tiny"
    folder.mkdir(parents=True)
    change(table.assign(method="mlknn")).to_csv(folder / "scores.csv", index=False)


def undefined(*metrics: str, dataset: str = "-toy"):
    def change(table: pd.DataFrame) -> pd.DataFrame:
        rows = table["metric"].isin(metrics) & table["dataset"].str.contains(dataset)
        return table.assign(value=table["value"].mask(rows))

    return change


def test_nan_is_refused_where_a_committed_method_has_a_value(judge, capsys, monkeypatch):
    monkeypatch.setattr(verifying, "recompute_apart", lambda *_: pytest.fail("the code was run"))
    commit_scores(judge)
    repack(changed_table("scores.csv", undefined("macro_auc", dataset="genes-toy")))
    line = refusal(["arena", "verify", ARCHIVE], capsys)
    assert "scores.csv: macro_auc on genes-toy, split 0 is NaN; committed methods have a value there" in line


def test_nan_is_accepted_where_no_committed_method_has_a_value(judge, capsys, monkeypatch):
    monkeypatch.setattr(verifying, "recompute_apart", lambda *_: {})
    label = "macro_f1", "micro_f1", "macro_auc", "micro_auc"
    earlier = pd.read_csv(io.BytesIO(contents()["scores.csv"]))
    commit_scores(judge, lambda table: pd.concat([undefined(*label)(table), earlier]))
    repack(changed_table("scores.csv", undefined(*label)))
    assert main(["arena", "verify", ARCHIVE, "markdown=comment.md"]) == 1
    assert "ridge_labels would be number 1 of 2" in capsys.readouterr().out
    assert "label" not in (judge.root / "comment.md").read_text().partition("by group of metrics: ")[2].split(".\n")[0]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (None, 1, "no ranks: there is no reports/tiny/scores.csv"),
        (lambda table: table.assign(split=9), 1, "no ranks: no committed method has results on these data sets and"),
        (lambda table: table.drop(columns="value"), 2, "scores.csv lacks the column 'value'"),
    ],
)
def test_without_ranks_the_reason_is_printed(judge, capsys, monkeypatch, change, code, message):
    monkeypatch.setattr(verifying, "recompute_apart", lambda *_: {})
    if change is not None:
        commit_scores(judge, change)
    assert main(["arena", "verify", ARCHIVE]) == code
    assert message in "".join(capsys.readouterr())


def test_a_method_on_a_package_of_the_extra_is_submitted_and_verified(made, judge, tmp_path, capsys):
    installed = pytest.importorskip("lightgbm").__version__
    author = Author(shutil.copytree(made, tmp_path / "author"))
    settings = author.settings.with_name("boosted.yaml")
    text = """{head}# /// script
# dependencies = ["lightgbm=={version}"]
# ///
_target_: multilab.methods.transformation.binary_relevance.BinaryRelevance
estimator: {{_target_: lightgbm.LGBMClassifier, n_estimators: 3, n_jobs: 1, verbose: -1, random_state: null}}
requires: multilab[arena]
"""
    with pytest.MonkeyPatch.context() as monkeypatch:
        author.enter(monkeypatch)
        settings.write_text(text.format(head=HEAD, version="4.0.0"))
        message = refusal(["arena", "submit", "boosted", "study=tiny", "--fit"], capsys)
        assert f"lightgbm==4.0.0 is declared, here it is {installed}" in message
        settings.write_text(text.format(head=HEAD, version=installed))
        assert main(["arena", "submit", "boosted", "study=tiny", "level=L2", "--fit"]) == 0
    shutil.copy(author.root / "submissions" / "boosted.zip", judge.root / "submissions")
    assert main(["arena", "verify", "submissions/boosted.zip", "sample=1"]) == 0
    assert "verified: 1 of 2 cells recomputed" in capsys.readouterr().out
    assert read_submission("submissions/boosted.zip").manifest.distributions == {"lightgbm": installed}


def shifted(metric: str, size: float):
    def change(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(value=table["value"].where(table["metric"] != metric, table["value"] + size))

    return change


@pytest.mark.parametrize(("metric", "size"), [("macro_f1", 1e-4), ("norm of scores", 1e-3)])
def test_a_changed_number_is_found_by_recomputation(judge, capsys, metric, size):
    repack(changed_table("scores.csv", shifted(metric, size)))
    assert main(["arena", "verify", ARCHIVE]) == 1
    printed = capsys.readouterr().out
    assert f"VERIFY: genes-toy/0/ridge_labels: {metric} is " in printed
    assert "refused: 2 of 2 cells recomputed" in printed
    assert json.loads(Path("submissions/ridge_labels.verified.json").read_text())["result"] == "refused"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[table["metric"] != "norm of scores"], "norm of scores is not submitted"),
        (lambda table: with_row(metric="norm of x", value=1)(table), "norm of x is nan, submitted is 1"),
    ],
)
def test_a_number_too_few_or_too_many_is_a_difference(judge, capsys, change, message):
    repack(changed_table("scores.csv", change))
    assert main(["arena", "verify", ARCHIVE]) == 1
    assert f"VERIFY: genes-toy/0/ridge_labels: {message}" in capsys.readouterr().out


@pytest.mark.parametrize(("failed", "reason"), [("ValueError:\n no", "ValueError: no"), (None, "not computed")])
def test_a_cell_that_fails_on_recomputation_is_a_difference(judge, capsys, monkeypatch, failed, reason):
    run = verifying.recompute_apart

    def without_first(study, settings, cells, store):
        run(study, settings, cells[1:], store)
        return {cells[0].label: failed} if failed else {}

    monkeypatch.setattr(verifying, "recompute_apart", without_first)
    assert main(["arena", "verify", ARCHIVE]) == 1
    assert f"VERIFY: ridge_labels on genes-toy, split 0: {reason}" in capsys.readouterr().out
    stamp = json.loads(Path("submissions/ridge_labels.verified.json").read_text())
    assert (stamp["result"], stamp["same_bits"], len(stamp["differences"])) == ("refused", 1, 1)


def test_the_seed_decides_which_cells_are_recomputed(judge, monkeypatch):
    chosen = []
    monkeypatch.setattr(verifying, "recompute_apart", lambda study, settings, cells, store: chosen.append(cells) or {})
    for seed in (*range(8), *range(8)):
        assert main(["arena", "verify", ARCHIVE, "sample=1", f"seed={seed}"]) == 1
    assert chosen[:8] == chosen[8:]
    assert {cell.split_ref.dataset for cells in chosen for cell in cells} == {"genes-toy", "topics-toy"}


def test_the_limits_of_the_study_hold_for_submissions(author, monkeypatch):
    limits = []
    for module in (submitting, recomputing):
        monkeypatch.setattr(module, "run_cells", lambda *_, **options: limits.append(options.get("limits")) or {})
    study = author.root / "conf" / "study" / "tiny.yaml"
    study.write_text(f"{study.read_text()}limits: {{seconds: 60, gigabytes: 4}}\n")
    assert main(["arena", "submit", "ridge_labels", "study=tiny", "--fit"]) == 0
    plan, result = author.root / "plan.json", author.root / "result.json"
    content = {"study": "tiny", "settings": str(author.settings), "cells": [["genes-toy", 0]], "store": "new"}
    plan.write_text(json.dumps(content | {"result": str(result)}))
    recomputing._recompute(plan)
    assert json.loads(result.read_text()) == {}
    assert limits == [CellLimits(60, 4)] * 2


def test_an_infinite_number_is_refused_and_the_stamp_is_json(judge, capsys):
    repack(changed_table("scores.csv", shifted("norm of scores", float("inf"))))
    assert main(["arena", "verify", ARCHIVE]) == 1
    assert "norm of scores is " in capsys.readouterr().out
    stamp = Path("submissions/ridge_labels.verified.json").read_text()
    assert json.loads(stamp, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["result"] == "refused"


@pytest.mark.parametrize(("size", "code"), [(1e-4, 0), (1e-2, 1)])
def test_level_2_allows_what_trees_need(judge, capsys, size, code):
    repack(changed_table("scores.csv", shifted("macro_f1", size)), {"level": "L2"})
    assert main(["arena", "verify", ARCHIVE]) == code
    assert f"compared at L2 (0.005), largest difference {size:.1e}" in capsys.readouterr().out


def drop_row(table: pd.DataFrame) -> pd.DataFrame:
    return table.iloc[1:]


def drop_dataset(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["dataset"] != "genes-toy"]


def with_row(**values):
    """Return a function that repeats the first row of a table with other values."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([table, table.iloc[:1].assign(**values)])

    return change


def with_split(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, table[table["dataset"] == "genes-toy"].assign(split=7)])


def wrong_key(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(key=["0" * 64, *table["key"][1:]])


FORGED = {
    "a changed method file": (
        lambda f: {"ridge_labels.py": f["ridge_labels.py"] + b"\nx = 1\n"},
        {},
        "is not that of the",
    ),
    "changed settings": (
        lambda f: {"ridge_labels.yaml": f["ridge_labels.yaml"].replace(b"1.0", b"2.0")},
        {},
        "is not that",
    ),
    "a wrong key": (lambda f: changed_table("cells.csv", wrong_key), {}, "the key on genes-toy, split 0 is not that"),
    "a cell too few": (lambda f: changed_table("cells.csv", drop_row), {}, "genes-toy, split 0 is missing"),
    "a cell twice": (lambda f: changed_table("cells.csv", with_row()), {}, "a cell is there twice, or is none of the"),
    "a cell too many": (
        lambda f: changed_table("cells.csv", with_row(split=7)),
        {},
        "a cell is there twice, or is none",
    ),
    "a cell without metrics": (
        lambda f: changed_table("scores.csv", drop_dataset),
        {},
        "scores.csv: not every cell has its metrics",
    ),
    "metrics of a cell too many": (
        lambda f: changed_table("scores.csv", with_split),
        {},
        "genes-toy, split 7 does not have each metric once",
    ),
    "a metric twice": (lambda f: changed_table("scores.csv", with_row()), {}, "split 0 does not have each metric once"),
    "a metric of another method": (
        lambda f: changed_table("scores.csv", with_row(method="mlknn", metric="x")),
        {},
        "split 0 does not have each metric once",
    ),
    "a name of a metric that is Markdown": (
        lambda f: changed_table("scores.csv", with_row(metric="[x](y)")),
        {},
        "scores.csv: '[x](y)' is no name of a number",
    ),
    "a metric too few": (lambda f: changed_table("scores.csv", drop_row), {}, "does not have each metric once"),
    "an infinite metric": (
        lambda f: changed_table("scores.csv", shifted("coverage", float("inf"))),
        {},
        "coverage is outside its range",
    ),
    "a metric out of range": (lambda f: changed_table("scores.csv", shifted("macro_f1", 5)), {}, "macro_f1 is outside"),
    "no licence": (
        lambda f: {"ridge_labels.py": f["ridge_labels.py"].replace(b"# SPDX-License", b"# Licence")},
        {},
        "must name your licence, there is none",
    ),
    "another licence": (lambda f: {}, {"licence": "MIT"}, "licence is not that of the method file"),
    "other authors": (lambda f: {}, {"authors": "2026 Eve Example"}, "authors is not that of the method file"),
    "other dependencies": (lambda f: {}, {"dependencies": {"pip": "1"}}, "dependencies is not that of the method file"),
    "a dependency that is not installed": (
        lambda f: {"ridge_labels.py": f["ridge_labels.py"] + b"\n# /// script\n# dependencies = ['pip==0.1']\n# ///\n"},
        {"dependencies": {"pip": "0.1"}},
        "pip==0.1 is declared, here it is",
    ),
    "an undeclared import": (
        lambda f: {"ridge_labels.py": f["ridge_labels.py"] + b"\nimport torch\n"},
        {},
        "'torch' is imported but not declared",
    ),
    "an interpolation": (lambda f: {"ridge_labels.yaml": b"_target_: ${oc.env:HOME}\n"}, {}, "an interpolation"),
    "an alias": (
        lambda f: {"ridge_labels.yaml": b"_target_: ridge_labels.A\na: &a [1]\nb: *a\n"},
        {},
        "an anchor, alias",
    ),
    "a tag": (
        lambda f: {"ridge_labels.yaml": b"_target_: ridge_labels.A\na: !!python/name:os.system\n"},
        {},
        "alias, tag",
    ),
    "code that is not declared": (
        lambda f: {"ridge_labels.yaml": b"_target_: torch.nn.Linear\n"},
        {},
        "'torch' is imported",
    ),
    "settings that name a module that imports": (
        lambda f: {"ridge_labels.yaml": b"_target_: importlib.import_module\nname: torch\n"},
        {},
        "ridge_labels.yaml: importlib hides what is imported",
    ),
    "settings of 13 levels": (
        lambda f: {"ridge_labels.yaml": f["ridge_labels.yaml"] + b"\na: " + b"[" * 12 + b"]" * 12 + b"\n"},
        {},
        "more than 12 levels",
    ),
    "another version": (lambda f: {}, {"versions": {"numpy": "1.0"}}, "computed with numpy 1.0, here it is"),
    "another schema": (lambda f: {}, {"schema": 9}, "has schema 9, this version reads 1"),
    "another level": (lambda f: {}, {"level": "L9"}, "level must be L1 or L2"),
    "an unknown study": (lambda f: {}, {"study": "../../x"}, "study is '../../x'"),
    "a wrong type": (lambda f: {}, {"versions": ["numpy"]}, "versions must be a dict[str, str]"),
    "no JSON": (lambda f: {"manifest.json": b"["}, {}, "manifest.json is not JSON"),
    "a table that is none": (lambda f: {"cells.csv": b"a,b\n1,2\n"}, {}, "cells.csv is not valid: its columns are not"),
    "a row with a field too many": (
        lambda f: {"cells.csv": f["cells.csv"].replace(b"genes-toy", b"X,genes-toy")},
        {},
        "cells.csv is not valid",
    ),
    "settings of a wrong type": (
        lambda f: {"ridge_labels.yaml": f["ridge_labels.yaml"] + b"\nbase_scores: 3\n"},
        {},
        "base_scores must be a list, not 3",
    ),
    "a key that is no text": (
        lambda f: {"ridge_labels.yaml": f["ridge_labels.yaml"] + b"\n1: 2\n"},
        {},
        "not a mapping whose keys are texts",
    ),
    "text for a number": (
        lambda f: {"scores.csv": f["scores.csv"].replace(b"macro_f1,0.", b"macro_f1,x0.", 1)},
        {},
        "scores.csv is not valid",
    ),
}


@pytest.mark.parametrize("fault", FORGED)
def test_a_forged_archive_is_refused_before_its_code_runs(judge, capsys, monkeypatch, fault):
    monkeypatch.setattr(verifying, "recompute_apart", lambda *_: pytest.fail("the code was run"))
    changes, manifest, message = FORGED[fault]
    repack(changes(contents()), manifest)
    line = refusal(["arena", "verify", ARCHIVE], capsys)
    assert line.startswith(("ArenaError: ", "ExperimentError: "))
    assert message in line
    assert not list(Path("submissions").glob("*.json"))
    assert "ridge_labels" not in sys.modules


def test_a_file_that_the_manifest_does_not_name_is_refused(judge, capsys):
    original = Path(ARCHIVE).read_bytes()
    repack(changed_table("scores.csv", shifted("macro_f1", 0.1)), sign=False)
    assert "scores.csv is not the file that the manifest names" in refusal(["arena", "verify", ARCHIVE], capsys)
    Path(ARCHIVE).write_bytes(original)
    repack({"other.py": b"x = 1\n"}, sign=False)
    assert "other.py is not the file that the manifest names" in refusal(["arena", "verify", ARCHIVE], capsys)
    repack({"other.py": b"x = 1\n"})
    assert "names other files" in refusal(["arena", "verify", ARCHIVE], capsys)


@pytest.mark.parametrize(
    "name", ["../x.py", "/etc/x.py", "a/b.py", "..\\x.py", "x.txt", "conf/", "x.PY", ".py", "a\x00.py"]
)
def test_an_entry_outside_the_archive_is_refused(judge, capsys, name):
    with zipfile.ZipFile(ARCHIVE, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"x = 1\n")
    assert "is none of a submission" in refusal(["arena", "verify", ARCHIVE], capsys)
    assert {path.name for path in judge.root.rglob("*") if path.is_file()} == {"tiny.yaml", "ridge_labels.zip"}


@pytest.mark.parametrize("kind", ["encrypted", "compressed by another method"])
def test_an_entry_that_is_not_plain_is_refused(judge, capsys, kind):
    files = contents()
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_STORED if kind == "encrypted" else zipfile.ZIP_BZIP2) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    if kind == "encrypted":
        changed = bytearray(Path(ARCHIVE).read_bytes())
        changed[changed.index(b"PK\x01\x02") + 8] |= 1  # in the central directory
        Path(ARCHIVE).write_bytes(changed)
    assert "is no plain file, or there twice" in refusal(["arena", "verify", ARCHIVE], capsys)


def test_links_bombs_and_lies_about_sizes_are_refused(judge, capsys):
    files = contents()

    def write(entries) -> None:
        with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in entries:
                archive.writestr(entry, content)

    link = zipfile.ZipInfo("ridge_labels.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    write([(link, b"/etc/passwd"), *((n, c) for n, c in files.items() if n != "ridge_labels.py")])
    assert "no plain file" in refusal(["arena", "verify", ARCHIVE], capsys)
    bomb = bytes(2**26)
    write([*((n, c) for n, c in files.items() if n != "scores.csv"), ("scores.csv", bomb)])
    assert Path(ARCHIVE).stat().st_size < 2**17
    assert "'scores.csv' unpacks to more than 16384 KiB" in refusal(["arena", "verify", ARCHIVE], capsys)
    lie = Path(ARCHIVE).read_bytes().replace((2**26).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    Path(ARCHIVE).write_bytes(lie)
    line = refusal(["arena", "verify", ARCHIVE], capsys)
    assert "not a readable archive" in line or "is not the file that the manifest names" in line
    with pytest.warns(UserWarning, match="Duplicate name"):
        write([*files.items(), ("scores.csv", files["scores.csv"])])
    assert "there twice" in refusal(["arena", "verify", ARCHIVE], capsys)
    write([*files.items(), *((f"a{at}.py", b"x = 1\n") for at in range(400))])
    assert "405 files; at most 16 are read" in refusal(["arena", "verify", ARCHIVE], capsys)
    write(files.items())
    damaged = bytearray(Path(ARCHIVE).read_bytes())
    with zipfile.ZipFile(ARCHIVE) as archive:
        entry = archive.getinfo("scores.csv")
    start = entry.header_offset + 30 + len(entry.filename)
    damaged[start : start + 20] = bytes([255]) * 20
    Path(ARCHIVE).write_bytes(damaged)
    assert "not a readable archive (error)" in refusal(["arena", "verify", ARCHIVE], capsys)
    Path(ARCHIVE).write_bytes(bytes(2**24 + 1))
    assert "larger than 16 MiB" in refusal(["arena", "verify", ARCHIVE], capsys)
    Path(ARCHIVE).write_bytes(b"PK nothing")
    assert "not a readable archive" in refusal(["arena", "verify", ARCHIVE], capsys)
    assert "there is no such file" in refusal(["arena", "verify", "nothing.zip"], capsys)


def test_a_folder_with_a_link_a_folder_or_a_large_file_is_refused(judge, capsys):
    folder = judge.root / "submissions" / "ridge_labels"
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    (folder / "extra.py").symlink_to("/etc/passwd")
    assert "'extra.py' is no plain file" in refusal(["arena", "verify", str(folder)], capsys)
    (folder / "extra.py").unlink()
    (folder / "data").mkdir()
    assert "'data' is no plain file" in refusal(["arena", "verify", str(folder)], capsys)
    (folder / "data").rmdir()
    (folder / "ridge_labels.py").write_bytes(bytes(2**18 + 1))
    assert "'ridge_labels.py' unpacks to more than 256 KiB" in refusal(["arena", "verify", str(folder)], capsys)


@pytest.mark.parametrize("name", ["numpy", "mlknn", "br_forest"])
def test_a_name_that_is_taken_is_refused(judge, capsys, name):
    files = contents()
    renamed = {
        f"{name}{end}": files[f"ridge_labels{end}"].replace(b"ridge_labels", name.encode()) for end in (".py", ".yaml")
    }
    kept = {file: content for file, content in files.items() if not file.startswith("ridge_labels")}
    with zipfile.ZipFile(ARCHIVE, "w") as archive:
        for file, content in (kept | renamed).items():
            archive.writestr(file, content)
    repack({}, {"name": name})
    assert f"there is a method or a module {name!r} already" in refusal(["arena", "verify", ARCHIVE], capsys)


def test_the_recomputing_process_gets_no_credentials(monkeypatch):
    for name in ("GITHUB_TOKEN", "GITHUB_OUTPUT", "GH_X", "MY_secret", "DB_PASSWORD", "ACTIONS_RUNTIME_URL"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("MULTILAB_DATA", "/data")
    kept = recomputing._environment()
    assert not {name for name in kept if "GITHUB" in name or "secret" in name.lower() or name == "GH_X"}
    assert kept["MULTILAB_DATA"] == "/data"
    assert "PATH" in kept


@pytest.mark.slow
def test_the_submitted_code_runs_in_another_process_only(judge, monkeypatch, capsys):
    monkeypatch.setattr(verifying, "recompute_apart", recomputing.recompute_apart)
    assert main(["arena", "verify", ARCHIVE]) == 0
    assert "2 of 2 cells recomputed" in capsys.readouterr().out
    assert "ridge_labels" not in sys.modules
