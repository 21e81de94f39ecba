"""Search a method's hyperparameters on one dataset."""

from __future__ import annotations


def main(argv: list[str]) -> int:
    """`multilab tune dataset=NAME method=NAME [tune.n_trials=20 tune.metric=ranking_loss]`."""
    from multilab.stages.adhoc import tune

    return tune(argv)
