"""The figures of a study's analyses: made from the tables in its report folder alone."""

from __future__ import annotations

import base64
import itertools
import json

import numpy as np
import pandas as pd
import pytest

from multilab.printed import find
from multilab.reports.data import load_report
from multilab.reports.errors import ReportError
from multilab.reports.figures import draw_figures

METHODS = {"mlwse_l1": "MLWSE-L1", "mlwse_l21": "MLWSE-L21"}


def tables():
    """Small tables of every analysis, all numbers made up."""
    x = np.linspace(-4, 4, 9)
    scenario = {"dataset": "scenario1", "x": x, "y": np.sin(x), "threshold": 0.0}
    kinds = [pd.DataFrame({**scenario, "kind": kind}) for kind in ("point", "curve")]
    both = list(itertools.product(METHODS, ["alpha-set", "beta-set"]))
    curves = pd.DataFrame(
        [(m, d, 10.0**e, 0.1 * e, 0.5) for m, d in both for e in (-3, -2, -1)],
        columns=["method", "dataset", "beta", "correlation", "smallest"],
    )
    grid = [("mlwse_l1", "alpha-set", a, b, np.nan) for a in (1e-4, 1.0) for b in (1e-3, 10.0)]
    cube = [("mlwse_l21", "alpha-set", a, b, c) for a in (0.05, 0.2) for b in (1e-2, 1.0) for c in (1e-3, 1e-1, 10.0)]
    points = pd.DataFrame(grid + cube, columns=["method", "dataset", "alpha", "beta", "lam"])
    points = points.assign(metric="example_f1", value=np.linspace(0.4, 0.6, len(points)))
    gaps = pd.DataFrame(
        [(m, d, "apg" if m == "mlwse_l1" else "bcd", i, 0.1 / i, 1e-9) for m, d in both for i in (1, 10, 100)],
        columns=["method", "dataset", "algorithm", "iteration", "gap", "certified"],
    )
    zeros = pd.DataFrame(
        [(m, d, r, r == 1e-3, r, r, 0.2 + r / 10, 0.6 - r / 2) for m, d in both for r in (1.0, 0.1, 1e-3)],
        columns=["method", "dataset", "ratio", "paper", "zeros", "zero_blocks", "hamming_loss", "example_f1"],
    )
    sweeps = pd.DataFrame(
        [
            (m, f"set{d}", s, 0.1 / (1 + s), 1.0 / (1 + s), 1e-9)
            for m in METHODS
            for d in range(5)
            for s in (0, 1, 2, 100)
        ],
        columns=["method", "dataset", "sweep", "hamming_loss", "gap", "certified"],
    )
    near = pd.DataFrame(
        [
            ("mlwse_l1", "set0", 40 + 10 * h, not h, r, d, r == 50, 1 / r, 0.2, 0.3)
            for h in (0, 1)
            for r in (5, 20, 50)
            for d in (0, 1)
        ],
        columns=[
            "method",
            "dataset",
            "train_rows",
            "held_out",
            "landmarks",
            "draw",
            "exact",
            "difference",
            "hamming_loss",
            "ranking_loss",
        ],
    )
    return {
        "scenarios": pd.concat(kinds),
        "affinity": curves,
        "sensitivity": points,
        "convergence": gaps,
        "sparsity": zeros,
        "sweeps": sweeps,
        "nystroem": near,
    }


@pytest.fixture
def folder(tmp_path):
    """A report folder with scores, settings and kept weights, and no table of an analysis yet."""
    info = {
        "method_titles": METHODS,
        "settings": {
            "mlwse_l1": {"alpha": 1e-4, "beta": 1e-3},
            "mlwse_l21": {"alpha": 0.05, "lam": 1e-3, "beta": 1e-2},
        },
    }
    (tmp_path / "study.json").write_text(json.dumps(info))
    rows = [("toy", "alpha-set", 0, method, "hamming_loss", 0.2) for method in METHODS]
    frame = pd.DataFrame(rows, columns=["study", "dataset", "split", "method", "metric", "value"])
    frame.to_csv(tmp_path / "scores.csv.gz", index=False)
    (tmp_path / "figures").mkdir()
    rng = np.random.default_rng(0)
    for method in METHODS:
        np.savez(
            tmp_path / "figures" / f"learned-{method}-alpha-set.npz",
            W_=rng.normal(size=(9, 3)),
            label_affinity_=np.eye(3),
            label_names=np.array(["a", "b", "c"]),
        )
    return tmp_path


def drawn(folder, **chosen):
    for name, table in chosen.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    sources = [source for name in ("mlwse", "mlekelm") for source in find(name).figures]
    figures = draw_figures(load_report(folder), sources)
    return [(title, tuple(group)) for title, group in itertools.groupby(figures, lambda figure: figure.title)]


def svg_text(figure):
    kind, _, content = figure.image.partition(";base64,")
    assert kind == "data:image/svg+xml"
    return base64.b64decode(content).decode()


def test_nothing_is_drawn_without_tables(folder):
    assert drawn(folder) == []


@pytest.mark.slow
def test_every_table_gives_its_figures_in_the_order_of_the_paper(folder):
    groups = drawn(folder, **tables())
    assert [len(group) for _, group in groups] == [1, 2, 2, 1, 1, 2, 1]
    assert [title.partition("(Fig")[2][:4] for title, _ in groups] == [". 2)", ". 3)", "s. 4", ". 6)", "", ". 2)", ""]
    for _, group in groups:
        for figure in group:
            assert "<svg" in svg_text(figure)
            assert figure.alt
            assert figure.width < 1300
            assert figure.caption.endswith(".")
    assert drawn(folder, **tables()) == groups  # the same bytes


def test_the_caption_names_the_best_point(folder):
    ((_, group),) = drawn(folder, sensitivity=tables()["sensitivity"])
    assert "MLWSE-L1 on alpha-set" in group[0].caption
    assert "0.440 at α = 1, β = 10." in group[0].caption
    assert "0.600 at α = 0.2, λ = 10, β = 1, through which the slices go" in group[1].caption


@pytest.mark.slow
def test_a_value_changes_its_figure_only(folder):
    before = dict(drawn(folder, **tables()))
    changed = tables()["convergence"]
    changed.loc[1, "gap"] *= 3
    after = dict(drawn(folder, convergence=changed))
    assert [title for title in before if before[title] != after[title]] == [
        "Convergence of the paper’s algorithms (Fig. 6)"
    ]


def test_the_sweeps_have_a_panel_per_dataset_and_say_where_they_end(folder):
    ((_, group),) = drawn(folder, sweeps=tables()["sweeps"])
    assert [svg_text(figure).count(">set") for figure in group] == [5, 5]
    assert "After 100 sweeps the distance is 0.0099 to 0.0099." in group[0].caption
    assert "MLWSE-L21" in group[1].caption


def test_the_caption_says_what_the_most_landmarks_lose(folder):
    ((_, (figure,)),) = drawn(folder, nystroem=tables()["nystroem"])
    assert "with 20 landmarks it is 0.05 and 0.05." in figure.caption
    assert "trained on all 50 rows" in figure.caption


def test_the_matrices_need_kept_weights(folder):
    for path in (folder / "figures").iterdir():
        path.unlink()
    ((_, group),) = drawn(folder, affinity=tables()["affinity"])
    assert len(group) == 1


def test_a_table_without_its_columns_is_named(folder):
    with pytest.raises(ReportError, match=r"convergence\.csv cannot be drawn: 'gap'"):
        drawn(folder, convergence=tables()["convergence"].drop(columns="gap"))
