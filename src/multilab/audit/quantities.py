"""Metrics by the names that tables give them: range, direction, and the grid their values lie on."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantity:
    """A metric that the checks know.

    Attributes
    ----------
    name : str
        Our name.
    low, high : float
        Range; ``high`` is infinite where it depends on the number of labels.
    direction : {"min", "max"}
        Whether small or large values are good.
    grid : {"cells", "rows", ""}
        On one test set of n rows and q labels the value is a multiple of 1/(n q), of 1/n, or of neither.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    direction: str = "max"
    grid: str = ""


_INF = float("inf")
_QUANTITIES = [
    Quantity("hamming_loss", direction="min", grid="cells"),
    Quantity("accuracy_1mHL", grid="cells"),
    Quantity("one_error", direction="min", grid="rows"),
    Quantity("coverage", high=_INF, direction="min", grid="rows"),
    Quantity("coverage_1based", high=_INF, direction="min", grid="rows"),
    Quantity("coverage_normalised", direction="min", grid="cells"),
    Quantity("subset_accuracy", grid="rows"),
    Quantity("zero_one_loss", direction="min", grid="rows"),
    Quantity("ranking_loss", direction="min"),
    Quantity("accuracy"),
    *(
        Quantity(name)
        for name in (
            "average_precision",
            "macro_auc",
            "micro_auc",
            "jaccard",
            "f1_of_means",
            "macro_f1_example",
            *(
                f"{average}_{part}"
                for average in ("example", "macro", "micro")
                for part in ("f1", "precision", "recall")
            ),
        )
    ),
]
QUANTITIES = {quantity.name: quantity for quantity in _QUANTITIES}
"""The metrics that the checks know, by our name."""

_OTHER_NAMES = {
    "hamming_loss": "hl hloss hamloss hamming",
    "one_error": "oe oneerr",
    "coverage": "cov cv coverageerror",
    "ranking_loss": "rl rloss rankloss",
    "average_precision": "ap avgprec avgprecision lrap",
    "macro_auc": "auc aucmacro macroaveragedauc",
    "micro_auc": "aucmicro",
    "accuracy": "acc mlaccuracy",
    "jaccard": "jaccardindex exampleaccuracy examplebasedaccuracy",
    "subset_accuracy": "exactmatch exactmatchratio subsetacc sa emr",
    "zero_one_loss": "subsetloss subset01loss 01loss zerooneloss",
    "example_f1": "f1 fmeasure f1example ebf1 examplebasedf1 examplef1score f1samples samplesf1 samplef1",
    "macro_f1": "maf1 f1macro macroaveragedf1 labelf1 macrof1score",
    "micro_f1": "mif1 f1micro microaveragedf1 microf1score",
    "example_precision": "precision precisionexample",
    "example_recall": "recall recallexample",
}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_BY_PLAIN_NAME = {_plain(name): name for name in QUANTITIES} | {
    other: name for name, others in _OTHER_NAMES.items() for other in others.split()
}


def quantity_of(name: str) -> Quantity | None:
    """Return the metric of a name, ``None`` for one that the checks do not know; ``x.mulan`` is ``x``.

    Examples
    --------
    >>> from multilab.audit import quantity_of
    >>> quantity_of("Hamming loss").name, quantity_of("CPU hours")
    ('hamming_loss', None)
    """
    known = _BY_PLAIN_NAME.get(_plain(name)) or _BY_PLAIN_NAME.get(_plain(name.partition(".")[0]))
    return QUANTITIES[known] if known else None
