"""The ensembles on real data compared with Mulan's and MEKA's, on the same folds and with the same metrics.

The other systems' base classifier is C4.5. The permitted differences of the means are those the project set
for an entropy tree instead of C4.5: Hamming loss .02 and average precision .03 on emotions, .04 and .05 on flags.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from multilab.datasets import load
from multilab.methods.ensembles.adaboost_mh import AdaBoostMH
from multilab.methods.ensembles.cde import CDE
from multilab.methods.ensembles.ebr import EBR
from multilab.methods.ensembles.ecc import ECC
from multilab.methods.ensembles.eps import EPS
from multilab.methods.ensembles.mls import MLS
from multilab.methods.ensembles.pessimistic_tree import PessimisticTree
from multilab.methods.ensembles.rakel import RAkEL
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.metrics import score_all

pytestmark = pytest.mark.data

PERMITTED = {
    "emotions": {"hamming_loss": 0.02, "average_precision": 0.03},
    "flags": {"hamming_loss": 0.04, "average_precision": 0.05},
}
TREE = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)
C45 = PessimisticTree()
Make = Callable[[Any, int], Any]
# ours, the other system, its name for the method
PAIRS: dict[str, tuple[Make, str, str]] = {
    "EBR": (lambda base, seed: EBR(base, random_state=seed), "meka", "EBR"),
    "ECC, confidences": (lambda base, seed: ECC(base, combine="confidence", random_state=seed), "mulan", "ECC"),
    "ECC, votes": (lambda base, seed: ECC(base, random_state=seed), "meka", "ECC"),
    "EPS": (lambda base, seed: EPS(base, random_state=seed), "mulan", "EPS"),
    "RAkEL": (lambda base, seed: RAkEL(base, random_state=seed), "mulan", "RAkEL"),
    "CDE": (lambda base, seed: CDE(base, random_state=seed), "mulan", "CDE_chi"),
}
SINGLE_TREES: dict[str, tuple[Make, str, str]] = {
    "BR": (lambda base, seed: BinaryRelevance(base, random_state=seed), "mulan", "BR"),
    "MLS": (lambda base, seed: MLS(base, include_features=True, random_state=seed), "mulan", "MLS2BR"),
}


@pytest.fixture(scope="module")
def reference(benchmark_data: Path) -> Path:
    folder = benchmark_data.parent / "reference"
    if not (folder / "summary.csv").is_file():
        pytest.skip(f"no reference results next to the data ({folder.name}/summary.csv)")
    return folder


def parts(reference: Path, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    content = json.loads((reference / "folds" / f"{name}.json").read_text(encoding="utf-8"))
    return [(np.array(fold["train"]), np.array(fold["test"])) for fold in content["folds"]]


def measured(reference: Path, name: str, make: Make, base: Any) -> dict[str, float]:
    data = load(name)
    values = []
    for number, (train, test) in enumerate(parts(reference, name)):
        scores, decisions = make(base, number).fit(data.X[train], data.Y[train]).predict_with_scores(data.X[test])
        assert ((scores >= 0) & (scores <= 1)).all()
        values.append(score_all(data.Y[test], scores, decisions, conventions="uniform"))
    return {metric: float(np.mean([v[metric] for v in values])) for metric in PERMITTED[name]}


def theirs(reference: Path, name: str, system: str, method: str) -> dict[str, float]:
    table = pd.read_csv(reference / "summary.csv").query("dataset == @name and peer == @system and method == @method")
    table = table[~table["params"].str.contains("PCut1")]  # MEKA's rows at the threshold .5
    means = table.set_index("metric")["mean"]
    assert means.index.is_unique
    return {metric: float(means[metric]) for metric in PERMITTED[name]}


def differences(reference: Path, name: str, pairs: dict[str, tuple[Make, str, str]], base: Any) -> pd.DataFrame:
    rows = []
    for title, (make, system, method) in pairs.items():
        ours, other = measured(reference, name, make, base), theirs(reference, name, system, method)
        for metric, limit in PERMITTED[name].items():
            difference = ours[metric] - other[metric]
            rows.append((name, title, system, metric, ours[metric], other[metric], difference, limit))
    columns = ["dataset", "method", "system", "metric", "ours", "theirs", "difference", "permitted"]
    table = pd.DataFrame(rows, columns=columns)
    print(f"\n{type(base).__name__}\n{table.round(4).to_string(index=False)}")
    return table


def outside(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["difference"].abs() > table["permitted"]]


@pytest.mark.parametrize("name", PERMITTED)
@pytest.mark.slow
def test_ensembles_of_entropy_trees_agree(reference: Path, name: str) -> None:
    table = differences(reference, name, PAIRS, TREE)
    assert outside(table).empty, outside(table).to_string()


@pytest.mark.parametrize("name", PERMITTED)
@pytest.mark.slow
def test_what_a_single_tree_loses_is_pruning(reference: Path, name: str) -> None:
    """Unpruned trees have leaves of one class, whose scores tie: no ensemble averages that away here.

    Two rules of C4.5 on the same tree, the price of a threshold and pessimistic pruning, account for the rest. (MLS of
    unpruned trees is out as well: average precision -.07 on emotions, -.12 on flags.)
    """
    grown = differences(reference, name, {"BR": SINGLE_TREES["BR"]}, TREE)
    assert not outside(grown).empty
    pruned = differences(reference, name, SINGLE_TREES, C45)
    assert outside(pruned).empty, outside(pruned).to_string()


def test_adaboost_m1_is_mulans_to_rounding(reference: Path) -> None:
    file = reference / "predictions" / "mulan__AdaBoostMH__emotions.npz"
    if not file.is_file():
        pytest.skip(f"no {file.name}")
    expected = np.load(file)
    data = load("emotions")
    for train, test in parts(reference, "emotions"):
        model = AdaBoostMH(10, "adaboost_m1").fit(data.X[train], data.Y[train])
        scores, decisions = model.predict_with_scores(data.X[test])
        np.testing.assert_allclose(scores, expected["scores"][test], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(decisions, expected["bipartition"][test])


def test_adaboost_m1_on_flags_decides_as_mulan(reference: Path) -> None:
    """Nominal features are one-hot columns here: the same splits, but equally good ones come in another order."""
    ours = measured(reference, "flags", lambda _, __: AdaBoostMH(10, "adaboost_m1"), None)
    other = theirs(reference, "flags", "mulan", "AdaBoostMH")
    assert ours["hamming_loss"] == pytest.approx(other["hamming_loss"], abs=1e-6)
    assert abs(ours["average_precision"] - other["average_precision"]) <= 0.05


@pytest.mark.slow
def test_real_boosting_repairs_it(reference: Path) -> None:
    printed = measured(reference, "emotions", lambda _, __: AdaBoostMH(10, "adaboost_m1"), None)
    real = measured(reference, "emotions", lambda _, __: AdaBoostMH(100), None)
    assert real["hamming_loss"] < printed["hamming_loss"] - 0.05
    assert real["average_precision"] > printed["average_precision"] + 0.2
