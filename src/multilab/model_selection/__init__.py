"""Splitters, protocols and stored splits.

``splits("emotions", {"kfold": 5, "stratify": 1})`` returns the stored splits of a dataset. Names are imported when
they are first used, so that ``split_digests`` stays free of NumPy.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "group_kfold": ("IterativeStratifiedGroupKFold",),
        "iterative_stratification": ("IterativeStratifiedKFold", "stratified_assignment"),
        "protocol": ("normalise_protocol",),
        "repeated_kfold": ("RepeatedIterativeStratifiedKFold",),
        "shuffle_split": ("IterativeStratifiedShuffleSplit", "train_test_split"),
        "stored_splits": ("split_digests", "splits"),
        "train_test_splits": ("Split", "indices_digest", "make_splits"),
    },
)
