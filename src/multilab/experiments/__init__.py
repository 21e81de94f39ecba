"""Cells: their keys, their store, and how they are planned, executed, evaluated and tracked.

A *cell* is one (dataset, split, method): the unit that is computed once, stored, and shared by all studies. A run is
five calls, each with a file: ``compose`` (settings), ``plan`` (cells with keys), ``execute`` (what is missing),
``evaluate`` (metrics of stored scores), ``track`` (MLflow). ``train``, ``tune`` and ``stages`` (of a study) call them.
Modules are imported by name (``from multilab.experiments import cells``); ``method``, ``study``, ``conf``, ``cells``
and ``plan`` stay light.
"""

import os

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before MLflow is first imported
