"""Analyses of a study beyond scores: what its figures and its table on simulated data are made of.

A study's YAML lists them under ``analyses``. Each module here is one analysis: ``FILE`` is the stem of its table in
``reports/<study>/``, ``compute(unit, store)`` makes the rows of one :class:`~multilab.experiments.analyses.unit.Unit`,
``finish(rows)`` the table.
"""
