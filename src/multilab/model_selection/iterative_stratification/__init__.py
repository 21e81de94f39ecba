"""Iterative stratification: folds in which every label, or pair of labels, is equally frequent.

Order 1 follows K. Sechidis, G. Tsoumakas, I. Vlahavas, On the stratification of multi-label data, ECML PKDD 2011
(Algorithm 1); order 2 follows P. Szymański, T. Kajdanowicz, A network perspective on stratification of multi-label
data, LIDTA 2017: pairs of labels that occur together are stratified like labels of their own.

``columns`` reads the labels, ``assignment`` is the algorithm, ``kfold`` the splitter. Names are imported when they are
first used: ``assignment`` needs NumPy and SciPy only.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "assignment": ("fold_sizes", "random_permutation", "stratified_assignment"),
        "columns": ("check_label_matrix", "stratification_columns"),
        "kfold": ("IterativeStratifiedKFold",),
    },
)
