"""Labels and the rows that observe them."""

import numpy as np


def is_partial(Y: np.ndarray) -> bool:
    """Return whether a validated label matrix has unobserved labels (-1): its type says so."""
    return Y.dtype == np.int8


def observed_groups(Y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the labels that are observed in the same rows, and these rows.

    What is solved for several labels at once is solved once per group then, each on its rows alone.

    Parameters
    ----------
    Y : ndarray of shape (n, q)
        0/1, or int8 with -1 for unobserved labels.

    Returns
    -------
    list of (labels, rows)
        Numbers, both ascending; every label is in one group.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods._observed import observed_groups
    >>> Y = np.array([[1, -1, 0], [0, 1, 1]], dtype=np.int8)
    >>> [(labels.tolist(), rows.tolist()) for labels, rows in observed_groups(Y)]
    [([0, 2], [0, 1]), ([1], [1])]
    """
    observed = Y >= 0
    groups: dict[bytes, list[int]] = {}
    for label, pattern in enumerate(np.packbits(observed, axis=0).T):
        groups.setdefault(pattern.tobytes(), []).append(label)
    return [(np.array(labels), np.flatnonzero(observed[:, labels[0]])) for labels in groups.values()]
