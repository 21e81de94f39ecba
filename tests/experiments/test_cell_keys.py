"""Every part of a cell's key: what moves it, and what does not."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from helpers.code_copy import PART, forget
from multilab.core.code_digests import package_node, reached_modules
from multilab.experiments import analyses as units
from multilab.experiments import cells
from multilab.experiments import method as method_module
from multilab.experiments.cells import Cell, scores_cell
from multilab.experiments.method import Method, load_method
from multilab.experiments.receipts import evaluation_digest
from multilab.experiments.search import search_name
from multilab.experiments.study import ObservedShare, Tuning

TUNE = Tuning(n_trials=2, folds=2, metric="hamming_loss")


def all_keys() -> dict[str, str]:
    """Return one key of each kind."""
    plain = Cell("train", PART, load_method("elm"))
    on_scores = Cell("train", PART, load_method("mlwse_l1"))
    return {
        "plain": plain.key,
        "tuned": replace(plain, method=load_method("mlknn"), tune=TUNE).key,
        "out-of-fold": scores_cell(plain, {"folds": 5, "order": 1}).key,
        "on base scores": on_scores.key,
        "hidden labels": replace(plain, observed=ObservedShare(0.5)).key,
        "analysis": units.Unit("multilab.papers.mlwse.sensitivity", "toy", 0, on_scores, None, {}).key,
        "table": replace(plain, split_ref=replace(PART, encoder="words")).key,
        "evaluate": evaluation_digest(),
    }


STACKS = ("stack", "stack_greedy", "stack_mlwse", "stack_one_decision", "distilled_stack")
ADDED = """@metric("Added", "max", "decisions", source="a test")
def added(counts, conventions):
    \"\"\"Return the share of rows with every label right.\"\"\"
    return counts.share_wrong + SHIFT


SHIFT = 1
"""


def chosen_keys() -> dict[str, str]:
    """Return keys of cells that choose by metrics, and of some that do not."""
    tuned = {name: replace(TUNE, metric=name) for name in ("hamming_loss", "macro_f1", "ranking_loss", "macro_auc")}
    return {
        "untuned": Cell("train", PART, load_method("mlknn")).key,
        "decided": Cell("train", PART, load_method("decide_macro_f1")).key,
        **{name: Cell("train", PART, load_method(name)).key for name in STACKS},
        **{metric: Cell("train", PART, load_method("mlknn"), tune=tune).key for metric, tune in tuned.items()},
        "by hamming": Cell(
            "train", PART, load_method("stack_one_decision").with_params({"metric": "hamming_loss"})
        ).key,
    }


PER_METRIC = {"stack", "stack_greedy", "stack_mlwse"}
HAMMING = {*PER_METRIC, "hamming_loss", "by hamming"}
F1 = "return mean_where_defined(counts.by_label.f1("
ALL_CHOSEN = {*STACKS, "hamming_loss", "macro_f1", "ranking_loss", "macro_auc", "by hamming"}


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("    return counts.share_wrong\n", "    return -counts.share_wrong\n", HAMMING),
        ('@metric("Hamming loss", "min"', '@metric("Hamming loss", "max"', HAMMING),
        (F1, F1.replace("mean", "-mean"), {*PER_METRIC, "macro_f1"}),
        ("auc, one_class = label_auc(ranking", "auc, one_class = label_auc(1 * ranking", {*PER_METRIC, "macro_auc"}),
        ("losses[np.isneginf(p)] = 0", "losses[np.isneginf(p)] = 1", {*STACKS, "by hamming"}),
        ("(rows.true == rows.hits) & (rows", "(rows.true == rows.hits) | (rows", PER_METRIC),
        ("errors[entries.lists, entries.positions] -= 1", "errors[entries.lists] -= 1", set()),
        ("counts.by_label.recall(conventions.macro", "counts.by_label.precision(conventions.macro", set()),
        ('@metric("Hamming loss"', f'{ADDED}\n\n@metric("Hamming loss"', set()),
        ("_ZHANG =", f"{ADDED}\n\n_ZHANG =", set()),
        ("auc_ties: float = 0.5", "auc_ties: float = 1.0", ALL_CHOSEN),
        ("self.formula(counts_or_ranking, conventions", "self.formula(counts_or_ranking, None", ALL_CHOSEN),
    ],
)
def test_the_formulas_of_the_metrics_that_a_cell_chooses_by_are_in_its_key(source, old, new, moved):
    before = chosen_keys()
    source(old, new, "metrics")
    after = chosen_keys()
    assert {name for name in before if before[name] != after[name]} == moved


def test_a_metric_of_another_name_and_an_unknown_one_have_another_key():
    keys = {metric: replace(TUNED, tune=replace(TUNE, metric=metric)).key for metric in ("macro_f1", "no_such_metric")}
    assert len({*keys.values(), TUNED.key}) == 3
    assert set(TUNED.identity["metrics"]) == {"hamming_loss"}


@pytest.mark.parametrize(
    ("old", "new", "folder", "moved"),
    [
        ("    return counts.share_wrong\n", "    return -counts.share_wrong\n", "metrics", True),
        (F1, F1.replace("mean", "-mean"), "metrics", False),
        ("if index < len(first)", "if index < 0", "experiments", True),
    ],
)
def test_a_search_on_all_rows_continues_no_trials_of_other_code(source, old, new, folder, moved):
    def name():
        return search_name(Cell("train", PART, load_method("mlknn")), TUNE)

    before = name()
    source(old, new, folder)
    assert (name() != before) == moved


def test_an_analysis_counts_the_metrics_that_it_computes(source):
    def unit():
        on_scores = Cell("train", PART, load_method("mlwse_l1"))
        return units.Unit("multilab.papers.mlwse.sparsity", "toy", 0, on_scores, None, {})

    before = unit().key
    assert set(unit().identity["metrics"]) == {"hamming_loss", "example_f1", "f1_of_means"}
    source(F1, F1.replace("mean", "-mean"), "metrics")
    assert unit().key == before
    source("    return counts.share_wrong\n", "    return -counts.share_wrong\n", "metrics")
    assert unit().key != before


CELLS = {"plain", "tuned", "out-of-fold", "on base scores", "hidden labels", "analysis", "table"}


@pytest.mark.parametrize(
    ("old", "new", "folder", "moved"),
    [
        ("MaxAbsScaler() if issparse(X) else MinMaxScaler()", "MinMaxScaler()", "experiments", CELLS),
        ("X_test = scaler.transform(X_train), (", "X_test = scaler.transform(X_train * 1.0), (", "experiments", CELLS),
        ("np.hstack(scores[0::2])", "np.hstack(scores[0:1])", "experiments", CELLS),
        ("X, estimator = estimator[:-1].transform(X), estimator[-1]", "pass", "experiments", CELLS),
        ("decisions = decisions.toarray()", "decisions = 1 - decisions.toarray()", "experiments", CELLS),
        ("n_splits=folds, order=order", "n_splits=folds, order=1", "experiments", CELLS),
        ("split = splits[ref.split % len(splits)]", "split = splits[0]", "experiments", CELLS),
        ('"inner folds")', '"folds")', "experiments", CELLS),
        (".generate_state(1)[0] >> 1", ".generate_state(1)[0] >> 2", "experiments", CELLS),
        ("fit_seeded(estimator, X[train], Y", "fit_seeded(estimator, X, Y", "methods", CELLS),
        ("if index < len(first)", "if index < 0", "experiments", {"tuned"}),
        (
            'scaling = changes.pop("preprocessing", self.p',
            'scaling = changes.pop("scaling", self.p',
            "experiments",
            {"tuned"},
        ),
        ('"minimize" if METRICS[tuning.metric]', '"maximize" if METRICS[tuning.metric]', "experiments", {"tuned"}),
        ("[rows] < share", "[rows] > share", "experiments", {"hidden labels"}),
        ("auc_ties: float = 0.5", "auc_ties: float = 1.0", "metrics", {"tuned", "evaluate", "analysis", "table"}),
        ("score_all(Y, scores, decisions", "score_all(1 - Y, scores, decisions", "experiments", {"evaluate"}),
        (
            "return 1.0 - counts.share_wrong",
            "return 2.0 - counts.share_wrong",
            "papers",
            {"evaluate", "table", "analysis"},
        ),
        ('dtype={"table": str, "mean": str}', 'dtype={"table": str}', "claims", {"evaluate"}),
        ("X = canonical_csr(sp.hstack(blocks))", "X = canonical_csr(sp.hstack(blocks) * 0)", "datasets", {"table"}),
        ("X[:, columns]\n    X_train", "X\n    X_train", "experiments", {"table"}),
    ],
)
def test_an_edit_of_code_that_decides_a_result_moves_the_keys_it_decides(source, old, new, folder, moved):
    before = all_keys()
    source(old, new, folder)
    after = all_keys()
    assert {name for name in before if before[name] != after[name]} == moved


@pytest.mark.parametrize(
    ("old", "new", "folder"),
    [
        ('"minmax" divides by the', '"minmax" scales by the', "experiments"),
        ("def predict_with_scores(", "# how a prediction is made\ndef predict_with_scores(", "experiments"),
        ("self.seconds = time.perf_counter() - self._start", "self.seconds = 0.0", "experiments"),
        ('    "host": socket.gethostname(),', '    "host": "",', "experiments"),
        ('contents["DONE"] = json.dumps(done, indent=1)', 'contents["DONE"] = json.dumps(done)', "experiments"),
        ("workers = min(n_jobs, len(items))", "workers = 1", "experiments"),
        ('return f"{value:.6g}"', 'return f"{value:.7g}"', "reports"),
    ],
)
def test_an_edit_that_decides_no_result_moves_no_key(source, old, new, folder):
    before = all_keys()
    source(old, new, folder)
    assert all_keys() == before


ELM = Cell("train", PART, load_method("elm"))


@pytest.mark.parametrize(
    "changed",
    [
        replace(ELM, kind="scores"),
        replace(ELM, split_ref=replace(PART, dataset_digest="2" * 64)),
        replace(ELM, split_ref=replace(PART, digest="2" * 64)),
        replace(ELM, seed=1),
        replace(ELM, alone=True),
        replace(ELM, observed=ObservedShare(0.5)),
        replace(ELM, method=ELM.method.with_params({"preprocessing": "standard"})),
        replace(ELM, method=ELM.method.with_params({"n_hidden": 7})),
        replace(ELM, method=replace(ELM.method, save_attributes=("coef_",))),
        replace(ELM, method=replace(ELM.method, base_scores=("br",))),
        replace(ELM, method=replace(ELM.method, target="multilab.methods.elm.relm.RELM")),
        replace(ELM, tune=TUNE, method=replace(ELM.method, search={"C": {"type": "float", "low": 0, "high": 1}})),
    ],
)
def test_every_setting_that_decides_a_result_is_in_the_key(changed):
    assert changed.key != ELM.key


def test_share_and_treatment_of_hidden_labels_are_in_the_key():
    half = ObservedShare(0.5)
    cells = [replace(ELM, observed=o) for o in (half, replace(half, share=0.6), replace(half, hidden="absent"))]
    assert len({cell.key for cell in cells}) == 3


TUNED = Cell("train", PART, load_method("mlknn"), tune=TUNE)


@pytest.mark.parametrize("changes", [{"folds": 3}, {"metric": "ranking_loss"}, {"n_trials": 3}, {"sampler": "random"}])
def test_every_setting_of_a_search_is_in_the_key(changes):
    assert replace(TUNED, tune=replace(TUNE, **changes)).key != TUNED.key
    space = {"k": {"type": "int", "low": 1, "high": 2}}
    assert replace(TUNED, method=replace(TUNED.method, search=space)).key != TUNED.key


def test_the_name_of_a_method_or_dataset_is_not_in_the_key():
    renamed = replace(
        ELM, method=replace(ELM.method, name="x", title="y", notes="z"), split_ref=replace(PART, dataset="u")
    )
    assert renamed.key == ELM.key


@pytest.mark.parametrize(
    ("library", "moved"),
    [("numpy", True), ("scipy", True), ("scikit-learn", True), ("optuna", False), ("mlflow", False)],
)
def test_the_versions_that_decide_a_result_are_in_the_key(library, moved, monkeypatch):
    before = replace(ELM).key, replace(TUNED).key
    version = cells.version
    monkeypatch.setattr(cells, "version", lambda name: "0.0" if name == library else version(name))
    forget()
    try:
        after = replace(ELM).key, replace(TUNED).key
    finally:
        monkeypatch.undo()
        forget()
    assert (after[0] != before[0]) == moved
    assert (after[1] != before[1]) == (library != "mlflow")


@pytest.mark.parametrize("target", ["multilab.methods.neighbours.mlknn.MLkNN", "multilab.methods.MLkNN"])
def test_the_code_of_a_method_is_in_its_key_by_either_of_its_names(source, target):
    def key():
        return Cell("train", PART, Method("own", target)).key

    before = key()
    source("exclude_self=self.exclude_self,", "exclude_self=False,", "methods/neighbours")
    assert key() != before


def test_an_edit_that_keeps_size_and_time_moves_the_key(source):
    file = source("exclude_self=self.exclude_self,", "exclude_self=bool(1),", "methods/neighbours")
    before, stat = replace(TUNED).key, file.stat()
    file.write_text(file.read_text().replace("exclude_self=bool(1),", "exclude_self=bool(0),"))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file.stat().st_size == stat.st_size
    forget()
    assert replace(TUNED).key != before


def test_a_setting_edited_within_one_tick_of_the_clock_is_read_again(tmp_path, monkeypatch):
    file = tmp_path / "method" / "own.yaml"
    file.parent.mkdir()
    file.write_text("_target_: a.B\nk: 1\n")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path))
    assert load_method("own").params == {"k": 1}
    stat = file.stat()
    file.write_text("_target_: a.B\nk: 2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert load_method("own").params == {"k": 2}


def test_what_the_modules_of_methods_import_from_this_package_is_in_their_keys(checkout):
    """But for errors and `multilab.core`: messages, and names that are imported late."""
    package = checkout / "src" / "multilab"
    files = [file for folder in ("methods", "decision") for file in sorted((package / folder).rglob("*.py"))]
    modules = [".".join(("multilab", *file.relative_to(package).with_suffix("").parts)) for file in files]
    nodes = reached_modules(modules, lambda name: package_node(name, ("multilab",)))
    known = (*method_module._CODE_WITHIN, "multilab.core", "multilab.datasets.errors")
    assert {name for name in nodes if not name.startswith(known)} == set()


def test_an_analysis_that_reads_a_cell_has_its_key_and_another_the_parts_of_it_that_it_uses():
    cell = Cell("train", PART, load_method("elm"))
    reads, other = (
        units.Unit(f"multilab.papers.{module}", "toy", 0, cell, None, {}).identity
        for module in ("lwmf.feature_curves", "mlwse.sensitivity")
    )
    assert reads["cell"] == cell.key
    assert "method" not in reads
    assert "cell" not in other
    assert (other["method"], other["split"]) == (cell.identity["method"], cell.identity["split"])
