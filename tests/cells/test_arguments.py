"""Arguments of methods and names in studies are checked against what exists, before anything is computed."""

from __future__ import annotations

import os

import pytest
from sklearn.base import BaseEstimator

from helpers.extras import skip_without_packages_of
from multilab.cells.arguments import check_method
from multilab.cells.conf import names, package_names
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, load_method
from multilab.cli import main
from multilab.core.messages import unknown_name
from multilab.experiments.study import check_study, load_study, study_from

SVC = "sklearn.svm.SVC"
STUDY = {"datasets": ["scenario1", "scenario2"], "methods": ["mlknn", "br"], "protocol": "kfold3"}


@pytest.mark.parametrize("name", package_names("method"))
def test_every_method_passes_with_its_own_and_its_small_arguments(name):
    method = load_method(name)
    check_method(method, tuned=True)
    check_method(method.with_params(method.check_params))


@pytest.mark.parametrize("name", names("study"))
def test_every_study_passes(name):
    skip_without_packages_of(name)
    check_study(load_study(name))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("mlknn", {"kk": 3}, r"mlknn has no argument kk; it has k, s, .*scale.*; did you mean k\?"),
        ("mlknn", {"k": "ten"}, "mlknn: k must be a whole number, not 'ten'"),
        ("mlknn", {"k": 2.5}, "k must be a whole number, not 2.5"),
        ("mlknn", {"exclude_self": 1}, "exclude_self must be true or false, not 1"),
        ("mlknn", {"scale": "minmaxx"}, "scale must be 'minmax' or null, not 'minmaxx'"),
        ("mlknn", {"preprocessing": "log"}, "no preprocessing is called 'log'; there are: none, minmax, standard"),
        ("dbpnn", {"hidden": [100, "fifty"]}, r"hidden must be a list \(a whole number each\)"),
        ("mlkelm", {"gamma": "scal"}, "gamma must be a number or .* not 'scal'"),
        ("br", {"estimator": "svc"}, "estimator must be a setting with the _target_ of an estimator"),
        ("br", {"estimator": {"_target_": SVC, "CC": 1}}, "SVC has no argument CC; it has C, kernel"),
        ("br", {"estimator": {"_target_": SVC, "C": "ten"}}, "The 'C' parameter of SVC must be a float"),
        ("br", {"estimator": {"_target_": "sklearn.svm.SVCC"}}, "no class is called 'SVCC'; did you mean 'SVC'"),
        ("br", {"estimator": {"_target_": "sklearn.svmm.SVC"}}, "there is no module sklearn.svmm"),
        ("br", {"estimator__CC": 1}, "SVC has no argument CC"),
        ("br", {"estimator__C": "ten"}, "The 'C' parameter of SVC must be a float"),
        ("br", {"estimatr__C": 1}, "no nested estimator is called 'estimatr'; did you mean 'estimator'"),
    ],
)
def test_a_wrong_argument_is_one_line_that_lists_what_there_is(name, changes, message):
    with pytest.raises(ExperimentError, match=message) as caught:
        check_method(load_method(name).with_params(changes))
    assert "\n" not in str(caught.value)


def test_a_search_space_of_a_tuned_method_names_its_arguments():
    method = Method("mine", load_method("mlknn").target, search={"kk": {"type": "int", "low": 1, "high": 3}})
    check_method(method)
    with pytest.raises(ExperimentError, match="mine has no argument kk"):
        check_method(method, tuned=True)


class Lenient(BaseEstimator):
    """An estimator of a user, annotated as people do."""

    def __init__(self, k: int = None, weights: tuple[int, str] = (1, "a"), path: os.PathLike = "", **more: int):  # noqa: RUF013
        self.k, self.weights, self.path, self.more = k, weights, path, more


def test_what_an_annotation_leaves_open_is_accepted():
    target = f"{__name__}.Lenient"
    for params in ({"k": None}, {"weights": [2, "b"]}, {"path": "x"}, {"other": 3}, {"path": {"a": 1}}):
        check_method(Method("mine", target, params))
    with pytest.raises(ExperimentError, match="mine: k must be a whole number, not '3'"):
        check_method(Method("mine", target, {"k": "3"}))
    with pytest.raises(ExperimentError, match="not a scikit-learn estimator"):
        check_method(Method("mine", "fractions.Fraction", {"numerator": 1}))


def test_the_steps_of_a_pipeline_are_checked():
    select = {"_target_": "sklearn.feature_selection.SelectKBest", "kk": 4}
    content = {"_target_": "sklearn.pipeline.Pipeline", "steps": [["select", select]]}
    with pytest.raises(ExperimentError, match="SelectKBest has no argument kk; it has score_func, k"):
        check_method(Method.from_mapping("pipe", content))
    select["k"] = select.pop("kk")
    with pytest.raises(ExperimentError, match="no nested estimator is called 'selct'"):
        check_method(Method.from_mapping("pipe", content | {"selct__k": 2}))
    check_method(Method.from_mapping("pipe", content | {"select__k": 2}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": [{"methods": ["mlknn"], "set": {"kk": 3}}]}, "mlknn has no argument kk"),
        (
            {"settings": [{"datasets": ["scenario2"], "methods": ["mlknn"], "set": {"k": "ten"}}]},
            "k must be a whole number",
        ),
        ({"settings": [{"methods": ["mlkn"], "set": {"k": 3}}]}, "no method is called 'mlkn'; did you mean 'mlknn'"),
        ({"settings": [{"datasets": ["scenario3"], "set": {"k": 3}}]}, "no dataset is called 'scenario3'"),
        ({"gate_cases": [{"methods": ["mlknn"], "set": {"kk": 3}}]}, "mlknn has no argument kk"),
        ({"metrics": ["hamming"]}, "conf/study/mine.yaml: no metric is called 'hamming'"),
        ({"headline": "rank_loss"}, "no metric is called 'rank_loss'; did you mean 'ranking_loss'"),
        ({"tune": {"n_trials": 3, "metric": "rank_loss"}}, "no metric is called 'rank_loss'"),
        ({"conventions": "mulann"}, "mulann"),
        ({"variants": {"more": {"settings": [{"methods": ["mlknn"], "set": {"kk": 3}}]}}}, "has no argument kk"),
    ],
)
def test_a_wrong_name_in_a_study_is_refused(changes, message):
    with pytest.raises(ExperimentError, match=message) as caught:
        check_study(study_from("mine", {**STUDY, **changes}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("argv", [["study", "new", "mine"], ["study", "run", "--study", "mine"]])
def test_a_wrong_study_is_refused_before_anything_is_written(argv, tmp_path, monkeypatch, capsys, checkout):
    import shutil

    shutil.copytree(checkout / "conf", tmp_path / "conf")
    text = "datasets: [scenario1]\nmethods: [mlknn]\nsettings: [{methods: [mlknn], set: {kk: 3}}]\n"
    (tmp_path / "conf" / "study" / "mine.yaml").write_text(text)
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    assert "mlknn has no argument kk; it has k, s, " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conf"]


def test_a_train_stage_refuses_an_edited_method_before_its_cells_run(tmp_path, monkeypatch, capsys, checkout):
    import shutil

    shutil.copytree(checkout / "conf", tmp_path / "conf")
    (tmp_path / "conf" / "study" / "mine.yaml").write_text("datasets: [scenario1]\nmethods: [mlknn]\n")
    path = tmp_path / "conf" / "method" / "mlknn.yaml"
    path.write_text(path.read_text().replace("\nk: 10\n", "\nkk: 10\n"))
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.chdir(tmp_path)
    assert main(["study", "train", "--study", "mine", "--method", "mlknn"]) == 2
    assert "mlknn has no argument kk" in capsys.readouterr().err
    assert not list((tmp_path / "cells").glob("*"))


def test_a_class_of_multilab_methods_has_a_hint():
    import multilab.methods

    with pytest.raises(AttributeError, match="'MLKNN'; did you mean MLkNN"):
        _ = multilab.methods.MLKNN
    with pytest.raises(ImportError, match="'MLKNN'; did you mean MLkNN"):
        from multilab.methods import MLKNN  # noqa: F401
    assert not hasattr(multilab.methods, "MLKNN")
    from multilab.methods import neighbours  # a subpackage still is one

    assert neighbours.__name__ == "multilab.methods.neighbours"


def test_a_long_list_is_printed_only_without_a_close_name():
    known = [f"set-{i}" for i in range(40)]
    near = unknown_name("dataset", "set-41", known, "multilab datasets list")
    assert "did you mean 'set-4" in near
    assert near.endswith("(`multilab datasets list` lists all 40)")
    assert unknown_name("dataset", "xyz", known, "multilab datasets list").count("set-") == 40
    assert unknown_name("order", "x", []) == "no order is called 'x'; there are: none"
