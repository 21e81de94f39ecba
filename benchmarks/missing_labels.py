"""Scores of the methods that learn from partially observed labels, by the share of the training labels they see.

    MULTILAB_DATA=... python benchmarks/missing_labels.py [--draw]

On six sets, two thirds of the rows for training (stratified), 10 to 90 % of the training labels are hidden at random.
The masks are the same for all methods, and what is observed at a smaller share is observed at a larger one too. Each
method learns from the observed labels alone, and again from complete labels in which a hidden one is absent (0);
those that refuse unobserved labels in the second way only. Test labels are complete. Writes
``benchmarks/missing_labels.csv`` and the figure of the guide; ``--draw`` draws the figure only. Nothing is timed, so
that any load of the machine will do; ten minutes on an idle core.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from threadpoolctl import threadpool_limits

from common import CHECKOUT, arguments
from multilab import methods as m
from multilab.datasets import load
from multilab.metrics import score_all
from multilab.model_selection import IterativeStratifiedKFold

DATASETS = ("flags", "virus-go", "gpositive-go", "chd-49", "emotions", "birds")
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
METRICS = ("micro_f1", "macro_auc", "average_precision")
FOLDS = 3  # the first is the test set
RESULTS = CHECKOUT / "benchmarks" / "missing_labels.csv"
FIGURE = CHECKOUT / "docs" / "figures" / "missing-labels.svg"


def candidates() -> dict[str, Any]:
    """Return the methods, the last three of which refuse unobserved labels."""
    linear = LogisticRegression(max_iter=1000)
    stack = [("br", m.BinaryRelevance(linear)), ("mlknn", m.MLkNN())]
    return {
        "BR": m.BinaryRelevance(linear),
        "CC": m.ClassifierChain(linear),
        "EBR": m.EBR(random_state=0),
        "ECC": m.ECC(random_state=0),
        "MLS": m.MLS(linear, cv=3, random_state=0),
        "ML-kNN": m.MLkNN(),
        "ML-RBF": m.MLRBF(ratio=0.05, random_state=0),
        "AdaBoost.MH": m.AdaBoostMH(n_rounds=30),
        "ML-KELM": m.KernelELM(gamma="median"),
        "RELM": m.RELM(n_hidden=300, random_state=0),
        "MLWSE": m.StackedMLWSE(stack, final_estimator=m.MLWSE(beta=0.0), cv=3, random_state=0),
        "ELM": m.ELM(n_hidden=60, random_state=0),
        "ML-KELM, Nystroem": m.NystroemKernelELM(n_components=100, gamma="median", random_state=0),
        "ML-EKELM (L1)": m.ElasticNetKernelELM(penalty="l1", gamma="median"),
        "MLNB": m.MLNB(generations=5, random_state=0),
        "MDDM + ML-kNN": make_pipeline(m.MDDM(), m.MLkNN()),
        "MDDM selector + ML-kNN": make_pipeline(m.MDDMSelector(), m.MLkNN()),
        "kMDDM + ML-kNN": make_pipeline(m.KernelMDDM(), m.MLkNN()),
        "LSkMDDM + ML-kNN": make_pipeline(m.LSKernelMDDM(eta=1.0), m.MLkNN()),
        "LSkMDDM, Nystroem + ML-kNN": make_pipeline(m.NystroemLSKernelMDDM(eta=1.0, random_state=0), m.MLkNN()),
        "OLSkMDDM + ML-kNN": make_pipeline(m.OLSKernelMDDM(), m.MLkNN()),
        "KLSCCA + ML-kNN": make_pipeline(m.KLSCCA(eta=1.0), m.MLkNN()),
        "LP": m.LabelPowerset(linear),
        "RAkEL": m.RAkEL(random_state=0),
        "RF-PCT": m.RFPCT(n_estimators=30, random_state=0),
    }


def learns(estimator: Any) -> bool:
    """Return whether a method, all steps of a pipeline, learns from unobserved labels."""
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    return all(step._accepts_missing_labels for step in steps)


def runs(estimator: Any) -> Iterator[tuple[float, str]]:
    """Yield the observed shares and treatments of a method."""
    yield 1.0, "complete"
    for share in SHARES:
        if learns(estimator):
            yield share, "observed"
        yield share, "absent"


def measure(dataset: str) -> Iterator[dict[str, Any]]:
    """Yield the scores of all methods on a data set."""
    data = load(dataset)
    train, test = next(IterativeStratifiedKFold(FOLDS).split(data.X, data.Y))
    scaler = MaxAbsScaler() if issparse(data.X) else MinMaxScaler()
    X, X_test, Y = scaler.fit_transform(data.X[train]), scaler.transform(data.X[test]), data.Y[train]
    numbers = np.random.default_rng(DATASETS.index(dataset)).uniform(size=Y.shape)  # observed if below the share
    for name, estimator in candidates().items():
        for share, treatment in runs(estimator):
            seen = np.where(numbers < share, Y, -1 if treatment == "observed" else 0).astype(np.int8)
            model = clone(estimator).fit(X, seen)
            transformed, last = (
                (model[:-1].transform(X_test), model[-1]) if hasattr(model, "steps") else (X_test, model)
            )
            values = score_all(data.Y[test], *last.predict_with_scores(transformed))
            common = {"dataset": dataset, "method": name, "observed": share, "treatment": treatment}
            yield from ({**common, "metric": metric, "value": round(values[metric], 6)} for metric in METRICS)


def means(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the mean over the sets, a row per method and treatment and a column per share."""
    chosen = results[results["metric"] == metric]
    return chosen.groupby(["method", "treatment", "observed"], sort=False)["value"].mean().unstack("observed")


def draw(results: pd.DataFrame, path: Path) -> None:
    """Draw micro F1 against the observed share, a panel per method."""
    from multilab.reports.figures.style import new_axes, styled

    table = means(results, "micro_f1")
    names = list(dict.fromkeys(results["method"]))
    with styled():
        columns = 4
        canvas, axes = new_axes(8.0, 1.6 * math.ceil(len(names) / columns), math.ceil(len(names) / columns), columns)
        for ax, name in zip(axes.ravel(), names, strict=False):
            complete = table.loc[(name, "complete"), 1.0]
            for treatment, style, text in (("observed", "-", "observed labels"), ("absent", "--", "hidden = absent")):
                if (name, treatment) in table.index:
                    values = [*table.loc[(name, treatment), list(SHARES)], complete]
                    ax.plot([*SHARES, 1.0], values, style, color="black", marker="o", markersize=2.5, label=text)
            ax.set_title(name)
            ax.set_ylim(0, 0.85)
            ax.set_xlim(0, 1.05)
        for ax in axes.ravel()[len(names) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("micro F1")
        for ax in axes[-1]:
            ax.set_xlabel("observed share")
        canvas.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main(argv: list[str] | None = None) -> None:
    """Measure and draw."""
    parser = arguments(__doc__)
    parser.add_argument("--draw", action="store_true", help="draw the figure from the file")
    given = parser.parse_args(argv)
    if not given.draw:
        rows = []
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dataset in DATASETS:
                rows += list(measure(dataset))
                print(dataset, len(rows), flush=True)
        pd.DataFrame(rows).to_csv(RESULTS, index=False, lineterminator="\n")
    results = pd.read_csv(RESULTS)
    draw(results, FIGURE)
    for metric in METRICS:
        print(f"\n{metric}\n{means(results, metric).round(3).to_string()}")


if __name__ == "__main__":
    main()
