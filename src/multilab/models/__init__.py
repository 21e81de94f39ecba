"""Models for use: fitted on all rows, saved without pickle, registered in MLflow, loaded, served and explained.

Names are imported when they are first used.
"""

from __future__ import annotations

import os

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "errors": ("DeploymentError",),
        "loading": ("load_model",),
        "metadata": ("ModelMetadata",),
        "saved_model": ("SavedModel",),
    },
)

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before MLflow is first imported
