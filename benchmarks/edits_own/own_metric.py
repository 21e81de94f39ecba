"""A user's metric."""


def own_f2(Y, decisions):
    """Return the F2 of all cells: recall counts four times."""
    hits = (Y * decisions).sum()
    return 5 * hits / max(4 * Y.sum() + decisions.sum(), 1)
