"""Reading of tables, and the command."""

from __future__ import annotations

import json

import pytest

from multilab.audit import AuditError, derived_kind, read_audit_cells, read_sizes
from multilab.cli import main
from multilab.cli.audit import audited_table

LONG = "dataset,method,metric,mean,std\n"
GOOD = "emotions,a,hamming_loss,0.194,0.010\nemotions,b,hamming_loss,0.210,0.012\n"


def written(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_long_form(tmp_path):
    cells = read_audit_cells(written(tmp_path, LONG + GOOD + "Average,a,hamming_loss,.2,\nscene,a,hamming_loss,DNF,\n"))
    assert [cell.kind for cell in cells] == ["", "", "mean", ""]
    assert (cells[0].mean.text, cells[0].std.text, cells[2].std, cells[3].mean) == ("0.194", "0.010", None, None)


def test_the_wide_form(tmp_path):
    text = "data,A,B\nemotions,0.194±0.010 (1),0.21 +/- 0.01\nAvg. rank,1.00,-\n"
    cells = read_audit_cells(written(tmp_path, text), metric="Hamming loss")
    assert [(c.method, c.kind, c.mean and c.mean.text, c.std and c.std.text) for c in cells] == [
        ("A", "", "0.194", "0.010"),
        ("B", "", "0.21", "0.01"),
        ("A", "average_rank", "1.00", None),
        ("B", "average_rank", None, None),
    ]
    assert cells[0].rank.text == "1"
    assert cells[0].direction == "min"


@pytest.mark.parametrize(
    "text",
    [
        "measure;A;B\nHamming loss;0.194±0.010 (1);0.21\nOne-error;0.3;0.2\n",
        "algorithm,Hamming loss,One-error\nA,0.194±0.010 (1),0.3\nB,0.21,0.2\n",
        "measure;A;B\nHamming loss;0,194±0,010 (1);0,21\nOne-error;0,3;0,2\n",
    ],
)
def test_metrics_and_methods_of_one_dataset(tmp_path, text):
    path = written(tmp_path, text)
    cells = read_audit_cells(path, dataset="yeast")
    found = {(c.dataset, c.method, c.metric): (c.mean.text, c.direction) for c in cells}
    assert found == {
        ("yeast", "A", "Hamming loss"): ("0.194", "min"),
        ("yeast", "B", "Hamming loss"): ("0.21", "min"),
        ("yeast", "A", "One-error"): ("0.3", "min"),
        ("yeast", "B", "One-error"): ("0.2", "min"),
    }
    assert {cell.dataset for cell in read_audit_cells(path)} == {path.stem}


def test_an_unknown_metric_among_known_ones_is_named(tmp_path):
    with pytest.raises(AuditError, match=r"Add `--metric NAME`.*unknown 'CPU hours'\."):
        read_audit_cells(written(tmp_path, "algorithm,Hamming loss,CPU hours\nA,0.194,3\nB,0.21,4\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one line of numbers"),
        ("dataset,method,metric\na,b,c\n", "column 'mean' is missing"),
        ("a,b\nx,0.1\n", "Add `--metric NAME` for a table of datasets and methods"),
        ("dataset,dataset,method,metric,mean\na,a,b,c,1\n", "two columns are called 'dataset'"),
        (LONG + "emotions,a,hamming_loss,abc,\n", "line 2: mean: 'abc' is not a number"),
        (LONG + "emotions,,hamming_loss,0.1,\n", "line 2: method is empty"),
        (
            LONG + GOOD + "emotions,a,hamming_loss,0.2,\n",
            "line 4: the cell emotions, a, hamming_loss is also in line 2",
        ),
        (LONG + "emotions,a,hamming_loss,-,\n", "no number in it"),
        (LONG + "emotions,a,hamming_loss,0.1,0.2,0.3\n", "line 2: 6 fields where line 1 has 5"),
        ("dataset,method,metric,mean,kind\na,b,c,1,meen\n", "did you mean 'mean'?"),
        ("dataset,method,metric,mean,direction\na,b,c,1,up\n", "direction is min or max, not 'up'"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, text, message):
    with pytest.raises(AuditError) as error:
        read_audit_cells(written(tmp_path, text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_wide_table_with_text(tmp_path):
    with pytest.raises(AuditError, match="line 2: B: 'much' is not a number"):
        read_audit_cells(written(tmp_path, "data,A,B\nemotions,0.1,much\n"), metric="hl")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Average", "mean"),
        ("(mean over the 6 sets)", "mean"),
        ("Avg. rank", "average_rank"),
        ("average_rank_over_6", "average_rank"),
        ("Friedman F_F", "iman_davenport"),
        ("CD", "critical_difference"),
        ("critical value of F_F", "f_critical"),
        ("emotions", ""),
        ("cd10k", ""),
    ],
)
def test_derived_rows_are_recognised_by_name(name, kind):
    assert derived_kind(name) == kind


def test_sizes(tmp_path):
    path = written(tmp_path, "dataset,n,q,cardinality,runs\nemotions,202,6,1.87,\n*,,,,5\n", "sizes.csv")
    sizes = read_sizes(path)
    assert (sizes["emotions"].n, sizes["emotions"].runs, sizes["*"].runs) == (202, None, 5)
    with pytest.raises(AuditError, match="`n` must be an integer of at least 1, got '-3'"):
        read_sizes(written(tmp_path, "dataset,n\nemotions,-3\n", "sizes.csv"))
    with pytest.raises(AuditError, match="column 'dataset' is missing"):
        read_sizes(written(tmp_path, "data,n\nemotions,3\n", "sizes.csv"))


def test_sizes_of_a_table(tmp_path):
    path = written(tmp_path, LONG + GOOD + "mine,a,hamming_loss,0.1,\n")
    table = audited_table(path, dataset="emotions", size={"n": "202"})
    assert (table.size_of("emotions").n, table.size_of("emotions").q, table.size_of("mine").n) == (202, 6, None)
    table = audited_table(path, size={"n": "100", "runs": "5"}, cards=True)
    assert (table.size_of("emotions").q, table.size_of("mine").q, table.size_of("mine").n) == (6, None, 100)
    with pytest.raises(AuditError, match="did you mean 'emotions'"):
        audited_table(path, dataset="emotion")


def test_the_command(tmp_path, capsys):
    clean = written(tmp_path, LONG + GOOD)
    assert main(["audit", str(clean)]) == 0
    assert capsys.readouterr().out == "0 faults, 0 notes in 4 numbers\n"
    path = written(tmp_path, LONG + GOOD + "scene,a,hamming_loss,1.7,\n", "wrong.csv")
    assert main(["audit", str(path), "--n", "100", "--q", "6"]) == 1
    out = capsys.readouterr().out
    assert "scene, a, hamming_loss" in out
    assert "0.17" in out
    assert max(map(len, out.splitlines())) <= 200
    assert main(["audit", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["faults"], report["findings"][0]["printed"]) == (1, "1.7")


def test_what_a_user_can_fix(tmp_path, capsys):
    assert main(["audit", str(tmp_path / "none.csv")]) == 2
    assert main(["audit", str(written(tmp_path, LONG + GOOD)), "--q", "many"]) == 2
    error = capsys.readouterr().err
    assert "none.csv: No such file" in error
    assert "arguments: `q` must be an integer of at least 1, got 'many'" in error


def test_rows_of_a_latex_table_are_read(tmp_path):
    path = tmp_path / "table.tex"
    rows = r"emotions & 0.197 $\pm$ 0.012 & \textbf{0.190} \\[2pt]", r"yahoo\_arts & -- & 0.2 \\ \hline"
    head = r"\begin{tabular}{lcc}", r"\toprule", r"Dataset & a & b \\", r"\midrule"
    path.write_text("\n".join([*head, *rows, r"\bottomrule", r"\end{tabular}", ""]))
    cells = read_audit_cells(path, metric="hamming_loss")
    assert [(cell.dataset, cell.method, cell.mean and cell.mean.value) for cell in cells] == [
        ("emotions", "a", 0.197), ("emotions", "b", 0.19), ("yahoo_arts", "a", None), ("yahoo_arts", "b", 0.2),
    ]  # fmt: skip
    path.write_text("\n".join([*head, rows[0].replace("0.197", "0.x")]))
    with pytest.raises(AuditError, match=r"line 5: a: '0\.x"):
        read_audit_cells(path, metric="hamming_loss")


def test_cells_of_latex_are_read_and_a_metric_that_is_not_known_is_named(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text("dataset,a,b\nemotions,0.197 $\\pm$ 0.012,\\textbf{0.190} $\\pm$ 0.010\nscene,$0.1$,0.2\n")
    cells = read_audit_cells(path, metric="hamming_loss")
    assert [(cell.mean.value, cell.std and cell.std.value) for cell in cells] == [
        (0.197, 0.012), (0.19, 0.01), (0.1, None), (0.2, None),
    ]  # fmt: skip
    assert main(["audit", str(path), "--metric", "haming_los"]) == 0
    assert "'haming_los'; did you mean 'hamming_loss'?" in capsys.readouterr().err
    assert main(["audit", str(path), "--metric", "hamming_loss"]) == 0
    assert not capsys.readouterr().err
