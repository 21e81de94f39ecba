"""Tables of results: at the end of a sweep, and of what is stored."""

from __future__ import annotations

import csv
import io
import re
import sys
from dataclasses import replace

import pytest

from multilab.cells import cell_metrics
from multilab.cells.inventory import Inventory, ResultRow, StoredCell
from multilab.cells.method import Method
from multilab.cells.store import Store
from multilab.cli import main
from multilab.metrics import registry
from multilab.reports.tables.results import as_csv, as_latex, as_text, print_table, result_table

TRAIN = ["protocol=kfold3", "publish=false", "metrics=[hamming_loss,macro_f1]"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with two methods on two datasets, one of them also with another setting."""
    root = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MULTILAB_CELLS", str(root / "cells"))
        patch.setenv("MULTILAB_JOBS", "1")
        assert main(["train", "-m", "dataset=scenario1,scenario3", "method=mlknn,elm", *TRAIN]) == 0
        assert main(["train", "dataset=scenario3", "method=mlknn", "method.k=3", *TRAIN]) == 0
    return Store(root / "cells")


@pytest.fixture
def folder(store, monkeypatch):
    """Work in the folder of the store."""
    monkeypatch.chdir(store.root.parent)
    monkeypatch.setenv("MULTILAB_CELLS", str(store.root))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    return store


def row(dataset, method, loss, f1=0.5, settings=(), splits=2, expected=2, **more):
    metrics = {"hamming_loss": (loss - 0.01, loss + 0.01), "macro_f1": (f1, f1)}
    return ResultRow(dataset, "kfold5", method, settings, splits, expected, metrics, **more)


def text_of(rows, metrics):
    return as_text(result_table(rows, metrics))


def lines_of(text):
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()}


def test_on_one_dataset_means_with_their_spread_the_best_marked():
    rows = [row("a", "mlknn", 0.2, seconds=3.25, warnings=2), row("a", "elm", 0.1, 0.4)]
    lines = lines_of(text_of(rows, ["hamming_loss", "macro_f1"]))
    assert lines["mlknn"] == ["0.2000", "±0.0141", "0.5000", "±0.0000*", "3.2", "2"]
    assert lines["elm"] == ["0.1000", "±0.0141*", "0.4000", "±0.0000", "0.0", "0"]
    assert list(lines).index("elm") < list(lines).index("mlknn")  # sorted by the first metric


def test_over_several_datasets_means_and_average_ranks():
    values = {"mlknn": (0.1, 0.3, 0.2), "elm": (0.2, 0.1, 0.3)}
    rows = [row(d, m, loss) for m, losses in values.items() for d, loss in zip("abc", losses, strict=True)]
    lines = lines_of(text_of(rows, ["hamming_loss", "macro_f1"]))
    assert lines["mlknn"][:4] == ["0.2000*", "1.33*", "0.5000*", "0.0"]
    assert lines["elm"][:4] == ["0.2000*", "1.67", "0.5000*", "0.0"]


def test_over_several_datasets_the_best_value_of_each_column_is_marked():
    """The best average rank can belong to another method than the best mean."""
    values = {"often": ((0.2, 0.2, 0.9), 0.6), "even": ((0.3, 0.3, 0.3), 0.7)}
    rows = [row(d, m, loss, f1) for m, (losses, f1) in values.items() for d, loss in zip("abc", losses, strict=True)]
    table = result_table(rows, ["hamming_loss", "macro_f1"])
    best = {table.heads[i]: [line[0].text for line in table.rows if line[i].best] for i in (1, 2, 3)}
    assert best == {"hamming_loss": ["even"], "rank": ["often"], "macro_f1": ["even"]}
    assert r"\textbf{0.3000}" in as_latex(table)
    assert r"\textbf{0.4333}" not in as_latex(table)


def test_what_is_missing_is_said_and_not_ranked():
    undefined = ResultRow("b", "kfold5", "mlknn", (), 2, 2, {"hamming_loss": (0.3, 0.3), "macro_f1": (float("nan"),)})
    rows = [row("a", "mlknn", 0.2), undefined, row("a", "elm", 0.1)]
    text = text_of(rows, ["hamming_loss", "macro_f1"])
    assert lines_of(text)["elm"][:2] == ["-", "-"]
    assert "elm: nothing on b; not ranked" in text
    assert "macro_f1 is not defined on b" in text
    part = text_of([row("a", "mlknn", 0.2), row("a", "elm", 0.1, splits=1)], ["hamming_loss"])
    assert "elm: 1 of 2 splits of a; not ranked" in part
    assert lines_of(part)["mlknn"][1].endswith("*")
    assert not lines_of(part)["elm"][1].endswith("*")


def test_settings_that_all_rows_share_stand_in_the_title():
    rows = [row("a", "mlknn", 0.2, settings=("seed=1", "k=3")), row("a", "mlknn", 0.1, settings=("seed=1",))]
    title, *rest = text_of(rows, ["hamming_loss"]).splitlines()
    assert "seed=1" in title
    assert any(line.startswith("mlknn k=3") for line in rest)
    assert not any("seed" in line for line in rest)


def test_latex_escapes_and_prints_the_best_bold():
    rows = [row("a", "mlwse_l1", 0.2, settings=("C=50%",)), row("a", "elm", 0.1, 0.4)]
    text = as_latex(result_table(rows, ["hamming_loss"]))
    assert r"mlwse\_l1 C=50\%" in text
    assert r"elm & \textbf{0.1000 $\pm$0.0141} & 0.0 & 0 \\" in text
    assert r"hamming\_loss $\downarrow$" in text


def test_csv_is_unrounded():
    rows = list(csv.DictReader(io.StringIO(as_csv([row("a", "elm", 1 / 3)], ["hamming_loss"]))))
    assert float(rows[0]["hamming_loss"]) == pytest.approx(1 / 3, abs=1e-15)
    assert rows[0]["splits"] == "2"


def test_on_a_terminal_the_best_is_bold(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    print_table([row("a", "mlknn", 0.2), row("a", "elm", 0.1)], ["hamming_loss"])
    text = capsys.readouterr().out
    assert "\x1b[1m0.1000 ±0.0141\x1b[0m" in text
    assert "\x1b[1m0.2000" not in text


def test_a_table_fits_100_columns_with_long_settings_and_what_has_no_room_below(capsys):
    names = (
        "hamming_loss",
        "macro_f1",
        "example_recall",
        "subset_accuracy",
        "average_precision",
        "ranking_loss",
        "one_error",
        "macro_auc",
    )
    long = ("estimator.random_state=null", "n_estimators=10", "max_samples=0.67")
    rows = [row("a", "mlknn", 0.2), row("a", "ecc", 0.1, settings=long)]
    for each in rows:
        each.metrics.update(dict.fromkeys(names, (0.25, 0.75)))
    print_table(rows, names)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.startswith("ecc [1] ") for line in lines)
    assert f"[1] {' '.join(long)}" in lines
    assert lines[-1] == "not shown, no room: macro_auc; choose with `multilab results --metric`"
    print_table(rows, names, every=True)
    first, second = capsys.readouterr().out.split("\n\n")
    assert (" auc" in first, " auc" in second, "no room" in first + second) == (False, True, False)
    assert [text.splitlines()[3].split()[0] for text in (first, second)] == ["mlknn", "mlknn"], "rows in one order"
    assert max(map(len, first.splitlines())) <= 100


@pytest.mark.slow
def test_a_sweep_ends_with_one_table(folder, capsys):
    argv = ["train", "-m", "dataset=scenario1,scenario3", "method=mlknn,elm", *TRAIN]
    assert main(argv) == 0
    text = capsys.readouterr().out
    table = text[text.index("2 datasets (scenario1, scenario3), kfold3") :]
    lines = lines_of(table)
    assert set(lines) >= {"mlknn", "elm"}
    blocks = text.split(" on scenario")
    printed = [float(line.split()[1]) for block in blocks for line in block.splitlines() if " hamming_loss" in line]
    assert len(printed) == 4  # per dataset: mlknn, elm
    assert float(lines["mlknn"][0].rstrip("*")) == pytest.approx((printed[0] + printed[2]) / 2, abs=1.01e-4)
    assert float(lines["elm"][0].rstrip("*")) == pytest.approx((printed[1] + printed[3]) / 2, abs=1.01e-4)


def test_a_sweep_whose_job_fails_shows_the_others(folder, capsys):
    argv = ["train", "-m", "dataset=scenario3", "method=mlknn", "method.k=10,5000", *TRAIN]
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert "1 of 2 jobs of the sweep failed: method.k=5000: " in printed.err
    assert "mlknn" in lines_of(printed.out[printed.out.index("scenario3, kfold3: mean") :])


def test_a_single_run_has_no_table(folder, capsys):
    assert main(["train", "dataset=scenario3", "method=mlknn", *TRAIN]) == 0
    assert "warnings" not in lines_of(capsys.readouterr().out).get("method", [])


def results(capsys, *argv, code=0):
    assert main(["results", *argv]) == code
    return capsys.readouterr()


def test_results_reads_what_is_stored(folder, capsys):
    text = results(capsys).out
    assert "scenario1, kfold3: mean" in text
    assert "2 datasets (scenario1, scenario3), kfold3" in text
    assert any(line.startswith("mlknn k=3 ") for line in text.splitlines())


def test_results_are_those_that_train_printed(folder, capsys):
    assert main(["train", "dataset=scenario3", "method=mlknn", *TRAIN]) == 0
    printed = capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(results(capsys, "--dataset", "scenario3", "--csv").out)))
    own = next(row for row in rows if row["method"] == "mlknn" and not row["settings"])
    assert f"{float(own['hamming_loss']):.4f}" in printed
    assert f"{float(own['hamming_loss.std']):.4f}" in printed
    assert own["splits"] == "3"
    assert own["protocol"] == "kfold3"


def test_results_are_filtered(folder, capsys):
    rows = list(csv.DictReader(io.StringIO(results(capsys, "--method", "ml*", "--dataset", "scenario3", "--csv").out)))
    assert {row["method"] for row in rows} == {"mlknn"}
    assert {row["settings"] for row in rows} == {"", "k=3"}
    assert "no results" in results(capsys, "--dataset", "emotions").out
    assert "no results" in results(capsys, "--protocol", "kfold10").out
    assert r"\toprule" in results(capsys, "--latex", "--metric", "macro_f1").out


def test_learning_curves_are_left_out_and_what_was_searched_comes_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    run = ["train", "dataset=scenario3", "method=elm", "publish=false"]
    (tmp_path / "conf" / "protocol").mkdir(parents=True)
    shares = tmp_path / "conf" / "protocol" / "shares.yaml"
    shares.write_text("{holdout: {train_size: 0.2}, stratify: 1, seed: 0, repeats: 3}")
    assert main([*run, "protocol=shares"]) == 0
    assert main([*run, "protocol=kfold3", "tune.n_trials=2", "tune.metric=macro_f1"]) == 0
    assert "\n  chosen: " in capsys.readouterr().out
    printed = results(capsys)
    assert "left out: 3 results (learning curves of `multilab compare`; --curves shows them)" in printed.err
    assert printed.out.count(" over the splits") == 1
    first, second = printed.out.splitlines()[1:3]
    assert (first.split()[0], second.split()[1]) == ("macro", "f1↑")
    every = results(capsys, "--curves").out
    assert every.count(" over the splits") == 2
    names = re.findall(r"^scenario3, (.*): mean", every, re.MULTILINE)
    chosen = results(capsys, "--protocol", next(name for name in names if name != "kfold3"))
    assert chosen.out.count(" over the splits") == 1
    assert not chosen.err


@pytest.mark.parametrize("name", ["gone", "label_frequencies"])  # the file of the second names another class
def test_a_method_that_is_not_that_of_its_file_is_shown_as_its_class(name):
    settings = {"_target_": "a.b.BinaryRelevance", "estimator": {"_target_": "c.Dummy", "strategy": "prior"}}
    cell = StoredCell("0" * 64, "done", {"method": name, "settings": settings, "parts": {"kind": "train"}})
    assert Inventory(Store("cells")).settings(cell) == ["BinaryRelevance(estimator=Dummy(strategy=prior))"]


def test_results_of_other_code_are_left_out_and_counted(folder, capsys, monkeypatch):
    monkeypatch.setattr(Method, "versions", lambda self, steps=(): {"Changed": [2]})
    printed = results(capsys)
    assert "no results" in printed.out
    assert "left out: 15 results (other declared versions)" in printed.err


def test_metrics_are_computed_once(folder, capsys, monkeypatch):
    from multilab.cells import cell_metrics

    first = results(capsys, "--csv").out

    def fail(*arguments):
        raise AssertionError("the metrics are in the store already")

    monkeypatch.setattr(cell_metrics, "evaluate_cell", fail)
    assert results(capsys, "--csv").out == first


@pytest.mark.parametrize("damage", ["", "{}", "zeroed", "another file", "another digit"])
def test_damaged_metrics_are_computed_again(folder, capsys, damage):
    first = results(capsys, "--csv").out
    stored, other = sorted(folder.root.glob(".metrics/*/*.json"))[:2]
    content = stored.read_text()
    at = content.index('"hamming_loss": 0.') + len('"hamming_loss": 0.')
    digit = content[:at] + str(9 - int(content[at])) + content[at + 1 :]
    texts = {"zeroed": "\0" * len(content), "another file": other.read_text(), "another digit": digit}
    stored.write_text(texts.get(damage, damage))
    assert results(capsys, "--csv").out == first
    assert stored.read_text() == content


def test_metrics_follow_their_formulas_and_a_new_metric_is_computed(folder, capsys, monkeypatch):
    argv = ["train", "dataset=scenario3", "method=elm", *TRAIN[:2]]
    before = results(capsys, "--dataset", "scenario3", "--method", "elm", "--csv").out
    key = next(cell.key for cell in Inventory(folder).cells("scenario3", "elm"))
    assert main([*argv, "metrics=[hamming_loss]"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setattr(cell_metrics, "formulas_digest", lambda *parts: "of the edited file")
    loss = registry.METRICS["hamming_loss"]
    changed = replace(loss, formula=lambda *given: 10 + loss.formula(*given))
    for table in (registry._STANDARD, registry._ALL):
        monkeypatch.setitem(table, "hamming_loss", changed)
        monkeypatch.setitem(table, "zz_loss", replace(changed, name="zz_loss"))
    assert main([*argv, "metrics=[hamming_loss]"]) == 0
    now = capsys.readouterr().out.splitlines()[-1]
    assert float(now.split()[1]) == pytest.approx(10 + float(line.split()[1]))
    assert results(capsys, "--dataset", "scenario3", "--method", "elm", "--csv").out != before
    assert main(["store", "list", "--dataset", "scenario3", "--method", "elm", "--metric", "zz_loss"]) == 0
    assert "10." in next(row for row in capsys.readouterr().out.splitlines() if row.startswith(key[:12]))


@pytest.mark.parametrize("argv", [["metric=haming_loss"], ["--csv", "--latex"], ["datasets=a"]])
def test_a_wrong_argument_is_one_line(folder, capsys, argv):
    assert len(results(capsys, *argv, code=2).err.strip().splitlines()) == 1
