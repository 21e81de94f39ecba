"""Cells, their store, how they are run, searched and tracked.

A *cell* is one (dataset, split, method): the unit that is computed once, stored, and shared by all studies.
Modules are imported by name (``from multilab.experiments import cells``): some must stay light.
"""
