"""Cells: their keys, their store, and how they are run, searched, evaluated and tracked.

A *cell* is one (dataset, split, method): the unit that is computed once, stored, and shared by all studies. In the
order of the work: ``method``, ``study``, ``conf``, ``cells``, ``execute``, ``running``, ``fitting``, ``search``,
``cell_metrics``, ``evaluation``, ``gate``, ``track``. Modules are imported by name
(``from multilab.experiments import cells``): ``method``, ``study``, ``conf`` and ``cells`` stay light.
"""

import os

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before MLflow is first imported
