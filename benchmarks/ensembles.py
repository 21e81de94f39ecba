"""Time the ensembles: against their own base-classifier fits, and RAkEL against scikit-multilearn-ng.

    MULTILAB_DATA=... OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/ensembles.py [emotions medical] [--repeats 3]

Processor time of fit on the first two thirds of the rows and predict on the rest, one thread; without MULTILAB_DATA,
simulated data of the same shapes.

*Overhead*: a run with a tree that remembers its calls gives the list of fits and predictions; the same list on bare
scikit-learn trees, nothing else, is what the ensemble is compared with. A bare tree validates X each time, an ensemble
once, so that less than nothing may be on top.

*RAkEL*: scikit-multilearn-ng's RakelO is a majority vote of label powersets over random subsets. Both get the same
subsets, the same tree and the same seed, and must decide the same wherever the vote is not a tie (which it rounds
down). Needs scikit-multilearn-ng in the environment (its own one, made for the purpose); left out where it is missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.ensembles.cde import CDE
from multilab.methods.ensembles.ebr import EBR
from multilab.methods.ensembles.ecc import ECC
from multilab.methods.ensembles.eps import EPS
from multilab.methods.ensembles.mls import MLS
from multilab.methods.ensembles.rakel import RAkEL

SHAPES = {"emotions": (593, 72, 6), "medical": (978, 1449, 45)}


class RecordingTree(DecisionTreeClassifier):
    """The default base classifier, which remembers what it was asked to do."""

    calls: ClassVar[list[tuple]] = []

    def fit(self, X: Any, y: Any) -> Any:
        """Fit and remember."""
        super().fit(X, y)
        self.calls.append((self, X, y, []))
        return self

    def predict_proba(self, X: Any) -> Any:
        """Predict and remember."""
        next(c for c in self.calls if c[0] is self)[3].append(X)
        return super().predict_proba(X)


def problem(name: str) -> tuple[Any, np.ndarray, Any, str]:
    """Return training X and Y, test X, and where they come from."""
    if os.environ.get("MULTILAB_DATA"):
        from multilab.datasets import load

        data = load(name)
        X, Y, source = data.X, data.Y, "real data"
    else:
        n, d, q = SHAPES.get(name, (1000, 50, 10))
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        Y = (X[:, :q] + 0.5 * rng.normal(size=(n, q)) > 0.8).astype(np.uint8)
        source = "simulated"
    rows = np.random.default_rng(1).permutation(len(Y))
    train, test = np.sort(rows[: 2 * len(Y) // 3]), np.sort(rows[2 * len(Y) // 3 :])
    return X[train], Y[train], X[test], source


def seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def overhead(make: Callable[[Any], MultiLabelClassifier], data: tuple, repeats: int) -> tuple[float, float, int]:
    """Return the median seconds of the whole, the median ratio to the bare trees minus 1, and the number of trees."""
    X, Y, X_test, _ = data
    settings = {"criterion": "entropy", "min_samples_leaf": 2}
    RecordingTree.calls.clear()
    make(RecordingTree(**settings)).fit(X, Y).predict_both(X_test)
    calls = list(RecordingTree.calls)

    def bare() -> None:
        for recorded, inputs, y, queries in calls:
            tree = DecisionTreeClassifier(**settings, random_state=recorded.random_state).fit(inputs, y)
            for query in queries:
                tree.predict_proba(query)

    whole, ratios = [], []
    for _ in range(repeats):
        spent = seconds(lambda: make(DecisionTreeClassifier(**settings)).fit(X, Y).predict_both(X_test))
        whole.append(spent)
        ratios.append(spent / seconds(bare) - 1.0)
    return float(np.median(whole)), float(np.median(ratios)), len(calls)


def against_rakelo(data: tuple, repeats: int) -> None:
    """Print the times of RAkEL and of RakelO's composition on equal subsets."""
    from skmultilearn.cluster import FixedLabelSpaceClusterer
    from skmultilearn.ensemble import MajorityVotingClassifier
    from skmultilearn.problem_transform import LabelPowerset

    X, Y, X_test, _ = data
    ours = RAkEL(DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2), random_state=0)
    ours.fit(X, Y)
    tree = ours._members.inputs.base
    given = sp.csr_matrix(X), sp.lil_matrix(Y.astype(int)), sp.csr_matrix(X_test)

    def rival() -> np.ndarray:
        model = MajorityVotingClassifier(
            classifier=LabelPowerset(classifier=tree, require_dense=[not sp.issparse(X), True]),
            clusterer=FixedLabelSpaceClusterer(clusters=[list(s) for s in ours.subsets_]),
            require_dense=[False, False],
        )
        return model.fit(given[0], given[1]).predict(given[2]).toarray()

    scores, decisions = ours.predict_both(X_test)
    clear = scores != 0.5
    differing = int((rival() != decisions)[clear].sum())
    times = np.array([(seconds(lambda: ours.fit(X, Y).predict_both(X_test)), seconds(rival)) for _ in range(repeats)])
    version = importlib.metadata.version("scikit-multilearn-ng")
    print(
        f"  RAkEL, {len(ours.subsets_)} subsets: {np.median(times[:, 0]):.3f} s; scikit-multilearn-ng {version} "
        f"{np.median(times[:, 1]):.3f} s; ratio {np.median(times[:, 1] / times[:, 0]):.2f}; "
        f"{differing} of {int(clear.sum())} decisions differ ({int((~clear).sum())} ties left out)"
    )
    if differing:
        raise SystemExit("not the same method: the times say nothing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["emotions", "medical"])
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    kinds: dict[str, Callable[[Any], MultiLabelClassifier]] = {
        "EBR": lambda tree: EBR(tree, random_state=0),
        "ECC": lambda tree: ECC(tree, random_state=0),
        "EPS": lambda tree: EPS(tree, random_state=0),
        "RAkEL": lambda tree: RAkEL(tree, random_state=0),
        "CDE": lambda tree: CDE(tree, random_state=0),
        "MLS": lambda tree: MLS(tree, random_state=0),
    }
    for name in chosen.datasets:
        data = problem(name)
        print(f"{name} ({data[3]}): X {data[0].shape[0]} x {data[0].shape[1]}, {data[1].shape[1]} labels")
        for title, make in kinds.items():
            whole, share, trees = overhead(make, data, chosen.repeats)
            print(f"  {title:6s} {whole:8.3f} s, {100 * share:+6.1f} % on top of {trees} bare trees")
        try:
            against_rakelo(data, chosen.repeats)
        except ImportError:
            print("  scikit-multilearn-ng is not installed: no comparison")


if __name__ == "__main__":
    main()
