"""Checks passed by every classifier of multilab, and by those of other libraries.

    python benchmarks/estimator_checks.py

Runs `multilab.testing.check_multilabel_estimator` on each and writes ``benchmarks/estimator_checks.csv``, from which
the documentation makes its scoreboard. Ours are the quick instances of the tests, other libraries' have few trees or
iterations. Peers that are not installed are left out by name. Nothing is timed; some minutes on a core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from common import CHECKOUT, Peers, arguments, peers
from multilab.methods.base import MultiLabelClassifier
from multilab.testing import check_multilabel_estimator

TARGET = CHECKOUT / "benchmarks" / "estimator_checks.csv"


def of_scikit_learn() -> dict[str, Any]:
    """Return scikit-learn's multi-label classifiers."""
    linear = LogisticRegression()
    return {
        "MultiOutputClassifier(LogisticRegression)": MultiOutputClassifier(linear),
        "ClassifierChain(LogisticRegression)": ClassifierChain(linear),
        "OneVsRestClassifier(LogisticRegression)": OneVsRestClassifier(linear),
        "KNeighborsClassifier": KNeighborsClassifier(),
        "DecisionTreeClassifier": DecisionTreeClassifier(),
        "RandomForestClassifier": RandomForestClassifier(10),
        "ExtraTreesClassifier": ExtraTreesClassifier(10),
        "MLPClassifier": MLPClassifier(max_iter=300),
        "RidgeClassifierCV": RidgeClassifierCV(),
    }


def of_scikit_multilearn() -> dict[str, Any]:
    """Return classifiers of scikit-multilearn-ng."""
    peers("scikit-multilearn-ng")
    from skmultilearn.adapt import MLARAM, BRkNNaClassifier, MLkNN
    from skmultilearn.problem_transform import BinaryRelevance, ClassifierChain, LabelPowerset

    dense = {"classifier": GaussianNB(), "require_dense": [True, True]}
    return {
        "BinaryRelevance(GaussianNB)": BinaryRelevance(**dense),
        "ClassifierChain(GaussianNB)": ClassifierChain(**dense),
        "LabelPowerset(GaussianNB)": LabelPowerset(**dense),
        "MLkNN": MLkNN(k=3),
        "BRkNNaClassifier": BRkNNaClassifier(k=3),
        "MLARAM": MLARAM(),
    }


def of_xgboost() -> dict[str, Any]:
    """Return XGBoost's classifier, which takes label matrices."""
    peers("xgboost")
    from xgboost import XGBClassifier

    return {"XGBClassifier": XGBClassifier(n_estimators=5, n_jobs=1)}


def of_catboost() -> dict[str, Any]:
    """Return CatBoost's classifier with its loss for label matrices."""
    peers("catboost")
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return {"CatBoostClassifier(MultiLogloss)": CatBoostClassifier(iterations=5, loss_function="MultiLogloss", **quiet)}


OTHERS: dict[str, Callable[[], dict[str, Any]]] = {
    "scikit-learn": of_scikit_learn,
    "scikit-multilearn-ng": of_scikit_multilearn,
    "xgboost": of_xgboost,
    "catboost": of_catboost,
}


def ours() -> dict[str, tuple[Any, dict[str, str]]]:
    """Return the quick instances of the tests, each with the reasons for what it cannot pass."""
    sys.path.insert(0, str(CHECKOUT / "tests"))
    from helpers.estimators import quick_instances, reasons

    classifiers = {n: e for n, e in quick_instances().items() if isinstance(e, MultiLabelClassifier)}
    return {name: (estimator, reasons(estimator)) for name, estimator in classifiers.items()}


def rows(library: str, name: str, estimator: Any, expected: dict[str, str]) -> pd.DataFrame:
    """Return the table of an estimator with its library and name."""
    warnings.simplefilter("ignore")
    board = check_multilabel_estimator(estimator, expected_failed_checks=expected, on_fail="return")
    cls = type(estimator).__name__
    return board.drop(columns="expected").assign(library=library, estimator=name, **{"class": cls})


def main() -> None:
    """Run the checks and write the table."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["multilab", *OTHERS], help="keep the rows of all other libraries")
    only = parser.parse_args().only
    jobs = [("multilab", name, *entry) for name, entry in ours().items()] if only in (None, "multilab") else []
    for library, estimators in OTHERS.items():
        if only not in (None, library):
            continue
        try:
            jobs += [(f"{library} {version(library)}", name, e, {}) for name, e in estimators().items()]
        except (Peers, ModuleNotFoundError) as error:
            print(f"left out: {library}: {error}")
    table = summary(pd.concat([rows(*job) for job in jobs]))
    if only:
        kept = pd.read_csv(TARGET, keep_default_na=False)
        names = [library.partition(" ")[0] for library in kept["library"]]
        table = pd.concat([kept[[name != only for name in names]], table])
    table.to_csv(TARGET, index=False, lineterminator="\n")
    print(table.drop(columns="failures").to_string(index=False))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per estimator and suite: how many checks pass of all, and the failures with their reasons."""
    groups = table.groupby(["library", "estimator", "class", "suite"], sort=False)
    made = [
        {
            **dict(zip(("library", "estimator", "class", "suite"), key, strict=True)),
            "passed": int(group["passed"].sum()),
            "checks": len(group),
            "failures": "; ".join(f"{r.check.removeprefix('check_')}: {r.reason}" for r in failed.itertuples()),
        }
        for key, group in groups
        for failed in [group[~group["passed"]]]
    ]
    return pd.DataFrame(made)


if __name__ == "__main__":
    main()
