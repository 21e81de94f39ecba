"""Shared one-hot columns of the text features of several files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multilab.datasets.raw_data import RawData


def share_categories(files: Sequence[RawData]) -> list[RawData]:
    """Return the files of one set with a 0/1 column for every text that occurs in any of them.

    Parameters
    ----------
    files : sequence of RawData
        Dense files, whose text became one-hot columns file by file.

    Returns
    -------
    list of RawData
        With the same columns, those of a text feature sorted; unchanged where the features themselves differ.
    """
    blocks = [_blocks(file) for file in files]
    if any(
        [(name, text) for name, text, *_ in one] != [(name, text) for name, text, *_ in blocks[0]] for one in blocks
    ):
        return list(files)
    names = list[list[str]]()
    for same in zip(*blocks, strict=True):
        of_files = [file.feature_names[start:stop] for file, (*_, start, stop) in zip(files, same, strict=True)]
        names.append(sorted(set().union(*of_files)) if same[0][1] else of_files[0])
    stops = np.cumsum([len(one) for one in names]).tolist()
    nominal = tuple(
        (name, stop - len(one), stop)
        for (name, text, *_), one, stop in zip(blocks[0], names, stops, strict=True)
        if text
    )
    flat = [name for one in names for name in one]
    return [
        replace(file, X=_spread(file, one, names), feature_names=flat, nominal=nominal)
        for file, one in zip(files, blocks, strict=True)
    ]


def _blocks(file: RawData) -> list[tuple[str, bool, int, int]]:
    """Return each feature: its name, whether it is text, its first column and one past its last."""
    nominal = {start: (name, stop) for name, start, stop in file.nominal}
    blocks, start = [], 0
    while start < len(file.feature_names):
        name, stop = nominal.get(start, (file.feature_names[start], start + 1))
        blocks.append((name, start in nominal, start, stop))
        start = stop
    return blocks


def _spread(file: RawData, blocks: Sequence[tuple[str, bool, int, int]], names: Sequence[Sequence[str]]) -> np.ndarray:
    """Return X with the columns ``names``: 0 where a text does not occur in this file, NaN where it is missing."""
    arrays = []
    for (_, _, start, stop), columns in zip(blocks, names, strict=True):
        block = np.zeros((len(file.X), len(columns)))
        position = {name: k for k, name in enumerate(columns)}
        block[:, [position[name] for name in file.feature_names[start:stop]]] = file.X[:, start:stop]
        block[np.isnan(file.X[:, start])] = np.nan
        arrays.append(block)
    return np.hstack(arrays)
