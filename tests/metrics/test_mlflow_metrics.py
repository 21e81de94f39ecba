"""Multi-label evaluation with MLflow: the values are those of `score_all`, linked to run, model and data."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, make_scorer

from multilab.metrics import METRICS, MetricError, score_all

mlflow = pytest.importorskip("mlflow")

from multilab.mlflow_metrics import (  # noqa: E402
    EvaluationError,
    evaluate_labels,
    evaluation_frame,
    evaluation_metrics,
)

pytestmark = pytest.mark.xdist_group("tracking")

LABELS = ["rain", "wind", "fog"]


@pytest.fixture(scope="module")
def tracking(tmp_path_factory):
    """A fresh store; no file is written elsewhere."""
    folder = tmp_path_factory.mktemp("evaluation")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = mlflow.create_experiment("labels", artifact_location=(folder / "artifacts").as_uri())
    yield experiment
    mlflow.set_tracking_uri(None)  # the address before would stay in the environment, for the commands of later tests


@pytest.fixture
def data():
    """True labels, decisions and scores of 40 rows."""
    random = np.random.default_rng(0)
    Y = pd.DataFrame((random.random((40, 3)) < 0.4).astype(int), columns=LABELS)
    scores = pd.DataFrame(random.random((40, 3)), columns=LABELS)
    return Y, (scores > 0.5).astype(int), scores


def agreement(Y, decisions):
    return (decisions == Y).mean()


def test_scorers_and_functions_are_logged_under_their_names(tracking, data):
    Y, decisions, scores = data
    chosen = ["macro_auc", make_scorer(f1_score, average="weighted"), agreement]
    with mlflow.start_run(experiment_id=tracking):
        result = evaluate_labels(Y, decisions, scores, metrics=chosen)
    expected = score_all(*(table.to_numpy() for table in (Y, scores, decisions)), metrics=chosen)
    assert result.metrics == {name: value for name, value in expected.items() if not name.startswith("n_skipped")}
    assert result.metrics["agreement"] == (decisions == Y).to_numpy().mean()


def test_every_metric_is_logged_and_linked_to_run_model_and_data(tracking, data):
    Y, decisions, scores = data
    with mlflow.start_run(experiment_id=tracking) as run:
        model = mlflow.initialize_logged_model("mlknn")
        names = [*METRICS, "log_loss"]
        result = evaluate_labels(
            Y, decisions[LABELS[::-1]], scores, metrics=names, model_id=model.model_id, name="weather"
        )
    expected = score_all(*(table.to_numpy() for table in (Y, scores, decisions)), metrics=names)
    assert result.metrics == {name: expected[name] for name in names}
    logged = mlflow.get_run(run.info.run_id)
    assert {name: logged.data.metrics[name] for name in names} == result.metrics
    (entry,) = logged.inputs.dataset_inputs
    assert entry.dataset.name == "weather"
    assert [item.model_id for item in logged.inputs.model_inputs] == [model.model_id]
    linked = {metric.key: metric for metric in mlflow.get_logged_model(model.model_id).metrics}
    assert linked["macro_f1"].value == expected["macro_f1"]
    assert linked["macro_f1"].dataset_name == "weather"


def test_mlflow_evaluates_a_frame_and_metrics_as_it_does_its_own(tracking, data):
    Y, decisions, _ = data
    with mlflow.start_run(experiment_id=tracking):
        result = mlflow.models.evaluate(
            data=evaluation_frame(Y, decisions, features=pd.DataFrame({"height": np.arange(40.0)})),
            targets="labels",
            predictions="decisions",
            extra_metrics=evaluation_metrics(["subset_accuracy"]),
        )
    assert result.metrics == {"subset_accuracy": score_all(Y, None, decisions)["subset_accuracy"]}


def test_without_scores_the_default_are_the_metrics_of_decisions(data):
    names = {metric.name for metric in evaluation_metrics()}
    assert names == {name for name, metric in METRICS.items() if metric.needs == "decisions"}
    assert {m.name for m in evaluation_metrics(["ranking_loss", "jaccard"]) if m.greater_is_better} == {"jaccard"}


def test_labels_that_were_not_observed_and_sparse_decisions(data):
    from scipy.sparse import csr_array

    Y, decisions, _ = data
    frame = evaluation_frame(Y.where(np.eye(40, 3) == 0), csr_array(decisions.to_numpy()))
    assert np.isnan(frame["labels"][0][0])
    assert frame["decisions"].tolist() == decisions.to_numpy().tolist()


def test_wrong_arguments_are_one_line_that_names_them(data):
    Y, decisions, scores = data
    wrong = {
        "`decisions` has shape (39, 3), the true labels (40, 3)": lambda: evaluation_frame(Y, decisions[1:]),
        "does not have the labels of the true labels: 'fog'": lambda: evaluation_frame(Y, decisions[["rain", "wind"]]),
        "`scores` must be a table of numbers": lambda: evaluation_frame(Y, decisions, scores.astype(str)),
        "other column names": lambda: evaluation_frame(Y, decisions, features=pd.DataFrame({"labels": range(40)})),
        "the metric 'ranking_loss' needs `scores`": lambda: evaluate_labels(Y, decisions, metrics=["ranking_loss"]),
    }
    for message, call in wrong.items():
        with pytest.raises(EvaluationError) as caught:
            call()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(MetricError, match="did you mean 'hamming_loss'"):
        evaluate_labels(Y, decisions, metrics=["haming_loss"])


def test_the_package_exports_them_without_importing_mlflow():
    program = (
        "import sys, multilab; frame = multilab.mlflow_metrics.evaluation_frame([[1]], [[0]]); "
        "print(frame['labels'][0], 'mlflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[1] False\n"
