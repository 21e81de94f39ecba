"""`multilab store`: listing, comparing and cleaning the store."""

from __future__ import annotations

import re
import shutil

import pytest

from helpers.keys import raise_version
from multilab.cells.cell import Cell, split_refs
from multilab.cells.conf import load_protocol
from multilab.cells.inventory import Inventory, base_method, protocol_text
from multilab.cells.method import Method, load_method
from multilab.cells.store import Store
from multilab.cli import main
from multilab.core import versions
from multilab.methods.neighbours.mlknn import MLkNN

TRAIN = ["dataset=scenario3", "publish=false", "metrics=[hamming_loss]"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a store with ML-kNN under two protocols, with another setting, a failed one, and a stacking method."""
    root = tmp_path_factory.mktemp("cells-verb")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MULTILAB_CELLS", str(root / "cells"))
        patch.setenv("MULTILAB_JOBS", "1")
        assert main(["train", "method=mlknn", "protocol=kfold3", *TRAIN]) == 0
        assert main(["train", "method=mlknn", "protocol=kfold3", "method.k=3", *TRAIN]) == 0
        assert main(["train", "method=mlknn", "protocol=kfold5", *TRAIN]) == 0
        assert main(["train", "method=mlknn", "protocol=kfold3", "method.k=5000", *TRAIN]) == 2
        assert main(["train", "method=mlwse_l1", "method.base_scores=[mlknn]", "protocol=kfold3", *TRAIN]) == 0
    return root


@pytest.fixture
def store(filled, tmp_path, monkeypatch):
    """Return a copy of the store, in the current folder."""
    shutil.copytree(filled / "cells", tmp_path / "cells")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    return Store()


def cells(capsys, *argv, code=0):
    assert main(["store", *argv]) == code
    return capsys.readouterr()


def key_of(protocol="kfold3", split=0, **params):
    part = split_refs("scenario3", load_protocol(protocol))[split]
    return Cell("train", part, load_method("mlknn").with_params(params)).key


@pytest.mark.slow
def test_list_has_settings_protocol_date_score_and_size(store, capsys):
    lines = cells(capsys, "list", "--method", "mlknn").out.splitlines()
    line = next(line for line in lines if line.startswith(key_of(k=3)[:12]))
    pattern = (
        r"\w{12}  done +20\d\d-\d\d-\d\d \d\d:\d\d +\d+\.\d\d +\d+\.\d +0\.\d{4}  scenario3, kfold3, split 0: mlknn k=3"
    )
    assert re.fullmatch(pattern, line), line
    default = next(line for line in lines if line.startswith(key_of("kfold5")[:12]))
    assert default.endswith("scenario3, kfold5, split 0: mlknn")
    assert re.fullmatch(rf"17 cells, \d+\.\d MB, in {re.escape(str(store.root))}", lines[-1])


def test_the_score_is_that_of_train(store, capsys):
    lines = cells(capsys, "list", "--method", "mlknn", "--metric", "hamming_loss").out.splitlines()
    scores = [
        float(re.search(r" (0\.\d{4})  scen", x).group(1)) for x in lines if x.endswith("mlknn") and "kfold5" in x
    ]
    assert main(["train", "method=mlknn", "protocol=kfold5", *TRAIN]) == 0
    printed = float(re.search(r"hamming_loss +(0\.\d+)", capsys.readouterr().out).group(1))
    assert sum(scores) / 5 == pytest.approx(printed, abs=1e-4)


def test_list_is_filtered(store, capsys):
    assert "0 cells" in cells(capsys, "list", "--dataset", "emotions").out
    failed = cells(capsys, "list", "--status", "failed").out.splitlines()
    assert len(failed) == 3 + 2
    assert all("mlknn k=5000" in line for line in failed[1:-1])
    assert " done " not in cells(capsys, "list", "--status", "outdated").out
    for line in ("list --status nice", "list --metric haming", "list --data a", "why a", "purge"):
        assert len(cells(capsys, *line.split(), code=2).err.strip().splitlines()) == 1


def test_a_listed_setting_is_also_one_of_what_is_read(store, capsys):
    assert "mlwse_l1 base_scores=[mlknn]" in cells(capsys, "list", "--method", "mlwse_l1").out
    inventory = Inventory(store)
    assert [inventory.outdated(cell) for cell in inventory.cells(status="done")] == [None] * (9 + 3 + 3 + 2)


def test_results_of_other_code_are_outdated(store, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        raise_version(patch, MLkNN)
        lines = cells(capsys, "list").out.splitlines()
    versions._versions.cache_clear()
    assert sum(" outdated " in line for line in lines) == 17  # the stacking method reads scores of mlknn
    assert not any(" done " in line for line in lines)


def test_why_describes_a_protocol(store, capsys):
    lines = cells(capsys, "why", key_of("kfold3")[:12], key_of("kfold5")[:12]).out.splitlines()
    assert lines[0] == "scenario3, kfold3, split 0: mlknn  |  scenario3, kfold5, split 0: mlknn"
    assert lines[1:] == ["protocol: kfold3 (kfold 3, seed 0, stratify 1) -> kfold5 (kfold 5, seed 0, stratify 1)"]


def test_why_tells_settings_splits_and_base_scores(store, capsys):
    assert cells(capsys, "why", key_of()[:12], key_of(k=3)[:12]).out.splitlines()[1:] == ["method.k: 10 -> 3"]
    assert cells(capsys, "why", key_of(), key_of(split=2)).out.splitlines()[1:] == ["split: 0 -> 2"]
    assert cells(capsys, "why", key_of(), key_of()).out.splitlines()[1:] == ["the same cell"]
    stacked = [cell.key for cell in Inventory(store).cells(method="mlwse_l1")]
    lines = cells(capsys, "why", stacked[0], stacked[1]).out.splitlines()[1:]
    assert lines[0].startswith("split: ")
    assert lines[1] == "base scores of mlknn differ:"
    assert lines[2].startswith("  split: ")


def test_clean_shows_first_and_removes_on_yes(store, capsys):
    before = {path.name for path in store.root.iterdir()}
    text = cells(capsys, "clean").out
    assert text.count("failed: scenario3, split") == 3
    assert "3 cells, 0.0 MB would be removed; --yes removes them" in text
    assert {path.name for path in store.root.iterdir()} == before
    finished = store.finished()
    assert "removed 3 cells" in cells(capsys, "clean", "--yes").out
    assert store.finished() == finished
    assert not list(Inventory(store).cells(status="failed"))
    assert "0 cells" in cells(capsys, "clean").out


def test_clean_finds_what_is_damaged_and_half_written(store, capsys):
    damaged, broken = key_of(), "ab" * 32
    (store.root / damaged / "arrays.npz").write_bytes(b"torn")
    (store.root / broken).mkdir()
    (store.root / ".part-elsewhere-1-x").mkdir()
    text = cells(capsys, "clean").out
    assert re.search(rf"{damaged[:12]} .*broken: ", text)
    assert re.search(rf"{broken[:12]} .*broken: neither finished nor a record", text)
    assert "1 half-written folders" in text
    cells(capsys, "clean", "--yes")
    assert not (store.root / damaged).exists()
    assert not (store.root / broken).exists()


def test_clean_removes_outdated_results_only_on_request(store, capsys, monkeypatch):
    cells(capsys, "clean", "--yes")
    declared = Method.versions

    def raised(method, steps=()):
        return {"MLkNN": [2]} if method.params.get("k") == 3 else declared(method, steps)

    monkeypatch.setattr(Method, "versions", raised)
    assert "0 cells" in cells(capsys, "clean").out
    text = cells(capsys, "clean", "--outdated").out
    assert text.count("outdated: other declared versions: scenario3, kfold3") == 3
    cells(capsys, "list")  # keeps the metrics of cells in the store
    cells(capsys, "clean", "--outdated", "--yes")
    assert not store.has(key_of(k=3))
    assert store.has(key_of())
    assert len(store.finished()) == 17 - 3
    assert "0 cells" in cells(capsys, "clean", "--outdated").out


def test_clean_is_filtered(store, capsys):
    assert "0 cells" in cells(capsys, "clean", "--dataset", "emotions").out
    assert "3 cells" in cells(capsys, "clean", "--method", "mlknn").out


def test_names_of_columns_lead_to_their_method():
    assert base_method("mls-svm") == "mls"
    assert base_method("elm[n_hidden=5]") == "elm"
    assert base_method("mlknn") == "mlknn"
    assert base_method("no-such-method") == "no-such-method"


def test_protocol_text():
    assert protocol_text(load_protocol("official")) == "official"
    assert protocol_text({"kfold": 5, "stratify": 1, "seed": 7}) == "5 folds (stratify 1, seed 7)"
    assert protocol_text({"holdout": {"train_size": 0.5}, "repeats": 3}) == 'hold-out {"train_size": 0.5} (repeats 3)'
    assert protocol_text(None) == "?"
