"""Benchmark data: cards, file formats, canonical matrices and official splits.

``load("emotions")`` returns a :class:`Dataset`. Names are imported when they are first used, so that
``prepared_meta`` stays free of NumPy.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "card_file": ("Card",),
        "catalogue": ("card", "card_folders", "cards", "own_dir"),
        "characteristics": ("describe",),
        "dataset": ("Dataset", "read"),
        "errors": ("DatasetError", "DatasetWarning"),
        "feature_columns": ("FeatureColumn",),
        "fetching": ("fetch",),
        "frame_encoder": ("FrameEncoder",),
        "imbalance": ("cvir", "irlbl", "mean_ir", "scumble", "scumble_lbl"),
        "prepared": ("load", "prepare", "prepared_meta"),
        "options": ("Reading",),
        "corrections": ("Correction", "read_corrections"),
        "own_cards": ("add_corrected", "add_dataset", "register_file"),
        "profiling": ("profile_table",),
        "reading_plan": ("check", "plan_reading"),
        "synthetic": ("sample_scenario",),
        "table_encoder": ("EncodedRows", "TableEncoder", "encoder_of"),
    },
)
