"""Every setting composes, builds, and means the same to Hydra and to the stages."""

from __future__ import annotations

import numpy as np
import pytest
from omegaconf import OmegaConf

from multilab.cells.conf import load_protocol, names, package_names, plain, read_settings, read_settings_file
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import parallel_map
from multilab.cells.method import Method, build, load_method
from multilab.cells.pipeline import MethodPipeline, predict_with_scores
from multilab.core import conf_dir
from multilab.experiments.search import distributions
from multilab.experiments.study import load_study, study_from

METHODS, STUDIES, PROTOCOLS = package_names("method"), names("study"), names("protocol")  # entrants: test_entrants


@pytest.fixture(scope="module")
def hydra():
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
        yield lambda *argv: compose("config", overrides=list(argv))


def test_there_are_settings():
    assert {"br", "cc", "lp", "mlknn", "mlkelm", "mlwse_l1", "mlwse_l21"} <= set(METHODS)
    assert {"quick", "mlwse-core", "mlwse"} <= set(STUDIES)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_means_the_same_to_hydra_and_builds(name, hydra):
    method = load_method(name)
    composed = Method.from_mapping(name, plain(hydra(f"method={name}").method))
    assert composed == method
    estimator = build(method)
    assert type(estimator).__name__ == method.target.rpartition(".")[2]
    assert build(method.with_params(method.check_params)).get_params()
    assert method.reference, "which paper is it from?"


@pytest.mark.parametrize("name", METHODS)
def test_a_search_space_holds_arguments_of_the_method_and_the_papers_values(name):
    method = load_method(name)
    if not method.search:
        pytest.skip(f"{name} has no search space")
    known = build(method).get_params(deep=True)
    for argument, space in distributions(method).items():
        assert argument in known or argument.split(".")[0] in known
        if argument in method.params:
            assert space._contains(space.to_internal_repr(method.params[argument])), argument


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_means_the_same_to_hydra(name, hydra):
    assert plain(hydra(f"protocol={name}").protocol) == load_protocol(name)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_names_what_there_is(name):
    from multilab import datasets
    from multilab.metrics import find_metric

    study = load_study(name)
    assert set(study.methods) <= set(names("method"))
    assert set(study.datasets) <= set(datasets.cards())
    assert all(map(find_metric, study.metrics))
    assert study.headline in study.metrics


def test_the_quick_study_covers_every_method():
    assert sorted(load_study("quick").methods) == METHODS


def test_settings_of_a_study_reach_the_methods_they_name():
    content = {"datasets": ["emotions", "scene"], "methods": ["mlknn"], "protocol": "kfold5"}
    block = {"methods": ["mlknn"], "datasets": ["scene"], "set": {"k": 40}}
    study = study_from("test", {**content, "settings": [block]})
    assert study.method("mlknn", "scene").params["k"] == 40
    assert study.method("mlknn", "emotions").params["k"] == 10
    assert study.method("mlknn").params["k"] == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_method("mlkn"), "did you mean 'mlknn'"),
        (lambda: study_from("x", {"datsets": []}), "unknown key 'datsets'; did you mean 'datasets'"),
        (lambda: study_from("x", {"datasets": "flags"}), "x.yaml: datasets must be a list, got 'flags'"),
        (lambda: study_from("x", {"datasets": ["flags", 3]}), r"datasets\[1\] must be text, got 3"),
        (lambda: study_from("x", {"methods": ["br"]}), "datasets is missing"),
        (lambda: study_from("x", {"datasets": ["flags"], "alpha": "0.05"}), "alpha must be a number, got '0.05'"),
        (
            lambda: study_from("x", {"datasets": ["flags"], "kind": "fare"}),
            "or ablation, got 'fare'; did you mean 'fair'",
        ),
        (
            lambda: study_from("x", {"datasets": ["flags"], "variants": {"a": {"tune": {"n_trails": 3}}}}),
            r"x\.yaml: variants\.a\.tune: unknown key 'n_trails'; did you mean 'n_trials'",
        ),
        (
            lambda: study_from("x", {"datasets": ["flags"], "variants": {"a": {"tune": {"folds": True}}}}),
            r"x\.yaml: variants\.a\.tune\.folds must be an integer, got True",
        ),
        (lambda: study_from("x", {"datasets": ["flags"], "limits": {"seconds": 5}}), "limits.gigabytes is missing"),
        (lambda: Method.from_mapping("x", {"k": 1}), "no _target_"),
        (lambda: Method.from_mapping("x", {"_target_": "a.B", "preprocessing": "log"}), "or tfidf, got 'log'"),
        (
            lambda: Method.from_mapping("x", {"_target_": "a.B", "preprocessing": "minmx"}),
            "'minmx'; did you mean 'minmax'",
        ),
        (
            lambda: Method.from_mapping("x", {"_target_": "a.B", "base_scores": "br"}),
            r"x\.yaml: base_scores must be a list, got 'br'",
        ),
        (
            lambda: Method.from_mapping("x", {"_target_": "a.B", "inner_cv": {"fold": 3}}),
            "unknown key .fold.; did you mean .folds.",
        ),
        (
            lambda: Method.from_mapping("x", {"_target_": "a.B", "search": {"k": {"type": "flot"}}}),
            "search.k.type must be float, int or",
        ),
        (
            lambda: Method.from_mapping("x", {"_target_": "a.B", "search": {"k": {"low": 1}}}),
            "search.k.type is missing",
        ),
        (
            lambda: distributions(Method("x", "a.B", search={"k": {"type": "natural"}})),
            "search.k is not a search space",
        ),
        (lambda: build(Method("x", "multilab.methods.neighbours.mlknn.MLkNN", {"kk": 1})), "cannot build"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(call, message):
    with pytest.raises(ExperimentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_pipeline_is_a_method_like_any_other():
    select = {"_target_": "sklearn.feature_selection.SelectKBest", "k": 4}
    steps = [["select", select], ["classify", {"_target_": "multilab.methods.neighbours.mlknn.MLkNN", "k": 5}]]
    content = {
        "_target_": "sklearn.pipeline.Pipeline",
        "steps": steps,
        "select__k": 2,
        "save_attributes": ["select__scores_"],
    }
    method = Method.from_mapping("x", content)
    model = build(method)
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2
    model[:-1].fit(X, y)
    model[-1].fit(model[:-1].transform(X), y[:, None])
    scores, decisions = predict_with_scores(model, X, 1)
    np.testing.assert_array_equal(scores, model.predict_proba(X))
    np.testing.assert_array_equal(decisions, model.predict(X))
    ours = MethodPipeline.of_fitted(model.steps, 1)
    np.testing.assert_array_equal(ours.learned("select__scores_"), model.named_steps["select"].scores_)
    assert ours.learned("select__no_such_thing_") is None
    assert ours.learned("n_labels_") == 1


def test_what_a_search_found_is_written_where_it_is_read():
    from multilab.experiments.tune import with_best

    nested = {"_target_": "x", "estimator": {"_target_": "y", "C": 1}, "k": 3}
    assert with_best(nested, {"estimator__C": 2, "k": 4}) == {**nested, "estimator": {"_target_": "y", "C": 2}, "k": 4}
    pipeline = {"_target_": "sklearn.pipeline.Pipeline", "steps": []}
    assert with_best(pipeline, {"select__k": 2}) == {**pipeline, "select__k": 2}


@pytest.mark.parametrize(
    "text", ["1e-3", "-1E5", ".5e-3", "2.e2", "1e", "e5", "2020-01-01", "yes", "0x10", "1_000", "~", "1.5"]
)
def test_values_are_read_as_hydra_reads_them(text, tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.yaml").write_text(f"value: {text}\nlist: [{text}]\n")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path))
    expected = OmegaConf.to_container(OmegaConf.load(tmp_path / "study" / "mine.yaml"))
    read = read_settings("study", "mine")
    assert read == expected
    assert type(read["value"]) is type(expected["value"])


def test_a_key_given_twice_is_refused(tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.yaml").write_text("value: 1\nother: {a: 1, a: 2}\n")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path))
    with pytest.raises(ExperimentError, match=r"mine\.yaml: not valid YAML: .*duplicate key a"):
        read_settings("study", "mine")


def test_work_in_parallel_keeps_its_order(monkeypatch):
    for jobs in ("1", "2", "5"):
        monkeypatch.setenv("MULTILAB_JOBS", jobs)
        for n in range(4):
            assert parallel_map(str, list(range(n))) == [str(i) for i in range(n)]


@pytest.mark.parametrize("start", ["", "a: ${b}\nc: "])
def test_settings_without_end_are_refused(tmp_path, start):
    path = tmp_path / "mine.yaml"
    path.write_text(start + "[" * 100_000)
    with pytest.raises(ExperimentError, match=r"mine\.yaml: not valid YAML: nested more than 200 levels"):
        read_settings_file(path)
