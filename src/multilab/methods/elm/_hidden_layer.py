# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Random hidden layer of an extreme learning machine."""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state


def draw_weights(
    d: int, n_hidden: int, bound: float, random_state: Any, bias_range: tuple[float, float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return input weights (d, n_hidden) and biases (n_hidden,), uniform on (-bound, bound).

    ``bias_range`` gives another interval for the biases.
    """
    random = check_random_state(random_state)
    low, high = (-bound, bound) if bias_range is None else bias_range
    return random.uniform(-bound, bound, size=(d, n_hidden)), random.uniform(low, high, size=n_hidden)


def hidden_output(X: Any, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the sigmoids 1 / (1 + exp(-(X weights + bias))), shape (n, n_hidden); X dense or CSR."""
    activation = np.asarray(X @ weights)
    activation += bias
    return expit(activation, out=activation)
