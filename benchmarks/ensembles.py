"""Time the ensembles: against their own base-classifier fits, and RAkEL against scikit-multilearn-ng.

    MULTILAB_DATA=... python benchmarks/ensembles.py [emotions medical] [--repeats 5]

Processor time of fit on the first two thirds of the rows and predict on the rest, one thread; without MULTILAB_DATA,
simulated data of the same shapes.

*Overhead*: a run with a tree that remembers its calls gives the list of fits and predictions; the same list on bare
scikit-learn trees, nothing else, is what the ensemble is compared with. A bare tree validates X each time, an ensemble
once, so that less than nothing may be on top.

*RAkEL*: scikit-multilearn-ng's RakelO is a majority vote of label powersets over random subsets. Both get the same
subsets, the same tree and the same seed, and must decide the same wherever the vote is not a tie (which it rounds
down).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier

from common import Line, Peers, arguments, peers, show
from multilab.methods.base import MultiLabelClassifier
from multilab.methods.ensembles.cde import CDE
from multilab.methods.ensembles.ebr import EBR
from multilab.methods.ensembles.ecc import ECC
from multilab.methods.ensembles.eps import EPS
from multilab.methods.ensembles.mls import MLS
from multilab.methods.ensembles.rakel import RAkEL

TREE = {"criterion": "entropy", "min_samples_leaf": 2}
KINDS = (EBR, ECC, EPS, RAkEL, CDE, MLS)
SHAPES = {"emotions": (593, 72, 6), "medical": (978, 1449, 45)}


class RecordingTree(DecisionTreeClassifier):
    """The default base classifier, which remembers its calls."""

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
    """Return the processor time of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def overhead(name: str, kind: type[MultiLabelClassifier], data: tuple, repeats: int) -> Line:
    """Time an ensemble and the trees it consists of, in turns."""
    X, Y, X_test, _ = data
    RecordingTree.calls.clear()
    recorded = kind(RecordingTree(**TREE), random_state=0).fit(X, Y).predict_with_scores(X_test)[0]
    calls = list(RecordingTree.calls)

    def bare() -> None:
        for tree, inputs, y, queries in calls:
            fresh = DecisionTreeClassifier(**TREE, random_state=tree.random_state).fit(inputs, y)
            for query in queries:
                fresh.predict_proba(query)

    def complete() -> np.ndarray:
        return kind(DecisionTreeClassifier(**TREE), random_state=0).fit(X, Y).predict_with_scores(X_test)[0]

    same = np.array_equal(complete(), recorded)
    times = np.array([(seconds(complete), seconds(bare)) for _ in range(repeats)])
    share = float(np.median(times[:, 0] / times[:, 1])) - 1.0
    value = f"{100 * share:+.1f} % ({1e3 * np.median(times[:, 0]):.0f} ms, {len(calls)} trees)"
    check = f"identical {recorded.size} scores" if same else "DIFFERENT: scores"
    return Line(f"{kind.__name__} on {name} beyond its bare trees", value, "< 10 %", share < 0.1, check)


def against_rakelo(name: str, data: tuple, repeats: int) -> Line:
    """Time RAkEL and RakelO's composition on equal subsets."""
    from skmultilearn.cluster import FixedLabelSpaceClusterer
    from skmultilearn.ensemble import MajorityVotingClassifier
    from skmultilearn.problem_transform import LabelPowerset

    X, Y, X_test, _ = data
    ours = RAkEL(DecisionTreeClassifier(**TREE), random_state=0).fit(X, Y)
    tree = ours._members.inputs.base
    given = sp.csr_matrix(X), sp.lil_matrix(Y.astype(int)), sp.csr_matrix(X_test)

    def rival() -> np.ndarray:
        model = MajorityVotingClassifier(
            classifier=LabelPowerset(classifier=tree, require_dense=[not sp.issparse(X), True]),
            clusterer=FixedLabelSpaceClusterer(clusters=[list(s) for s in ours.subsets_]),
            require_dense=[False, False],
        )
        return model.fit(given[0], given[1]).predict(given[2]).toarray()

    scores, decisions = ours.predict_with_scores(X_test)
    clear = scores != 0.5
    differing = int((rival() != decisions)[clear].sum())

    def fit_and_predict() -> tuple[np.ndarray, np.ndarray]:
        return ours.fit(X, Y).predict_with_scores(X_test)

    times = np.array([(seconds(fit_and_predict), seconds(rival)) for _ in range(repeats)])
    ratio = float(np.median(times[:, 1] / times[:, 0]))
    value = f"{ratio:.1f}x ({1e3 * np.median(times[:, 0]):.0f} ms to {1e3 * np.median(times[:, 1]):.0f} ms)"
    check = f"identical {int(clear.sum())} decisions, {int((~clear).sum())} ties left out"
    if differing:
        check = f"DIFFERENT: {differing} of {int(clear.sum())} decisions"
    return Line(f"RakelO's time to RAkEL's on {name}", value, ">= 1x", ratio >= 1.0, check)


def main(argv: list[str] | None = None) -> None:
    from threadpoolctl import threadpool_limits

    parser = arguments(__doc__)
    parser.add_argument("datasets", nargs="*", default=["emotions", "medical"])
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(argv)
    lines, notes = [], []
    with threadpool_limits(1):
        for name in chosen.datasets:
            data = problem(name)
            notes.append(f"{name} ({data[3]}): X {data[0].shape[0]} x {data[0].shape[1]}, {data[1].shape[1]} labels")
            lines += [overhead(name, kind, data, chosen.repeats) for kind in KINDS]
            try:
                peer = peers("scikit-multilearn-ng")["scikit-multilearn-ng"]
                lines.append(against_rakelo(name, data, chosen.repeats))
                notes.append(f"scikit-multilearn-ng {peer}")
            except Peers as error:
                notes.append(str(error))
    show("Ensembles", lines, list(dict.fromkeys(notes)), chosen.json)


if __name__ == "__main__":
    main()
