"""Studies, searches and single runs: composed, planned, executed, evaluated and tracked.

A run is five calls, each with a file: ``compose`` (settings), ``plan`` (cells with keys), ``multilab.cells.execute``
(what is missing), ``evaluate`` (metrics of stored scores), ``track`` (MLflow). ``train``, ``tune`` and ``stages`` (of a
study) call them.
"""
