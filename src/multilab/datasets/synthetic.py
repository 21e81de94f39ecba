"""Data sets that need neither a file nor a network: digits on a seven-segment display, and four curves.

Randomness is made of raw PCG64 words, which no NumPy version changes; ``X`` and ``Y`` are the same on all
machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from multilab.datasets.errors import DatasetError
from multilab.datasets.raw import RawData

__all__ = [
    "ScenarioSample",
    "bayes_accuracy",
    "generate",
    "sample_scenario",
    "scenario_curve",
    "scenario_threshold",
    "segments_of",
]

# Segment a is the upper bar, then clockwise b, c, d (lower bar), e, f, and g in the middle. 6 and 9 have
# their tails (a is lit for 6, d for 9) and 7 is the short form without f.
_SEGMENTS = {
    0: "abcdef",
    1: "bc",
    2: "abdeg",
    3: "abcdg",
    4: "bcfg",
    5: "acdfg",
    6: "acdefg",
    7: "abc",
    8: "abcdefg",
    9: "abcdfg",
}

# Solutions t of mean_x Phi(t - f_k(x)) = 1/2 over x uniform on [-4, 4]; a test recomputes them.
_MEDIANS = {1: 1.5819915110529592, 2: 3.5172504898348803, 3: 0.0, 4: 0.0}
_MEANS = {1: 1.5375, 2: 3.08, 3: 0.0, 4: 0.0}


class ScenarioSample(NamedTuple):
    """A sample of a scenario.

    Attributes
    ----------
    X : ndarray of shape (n, 1)
        Positions on [-4, 4].
    y_real : ndarray of shape (n,)
        Curve plus noise.
    Y : ndarray of shape (n, 1), uint8
        1 where ``y_real`` is above the threshold.
    f : ndarray of shape (n,)
        The true curve at ``X``.
    """

    X: np.ndarray
    y_real: np.ndarray
    Y: np.ndarray
    f: np.ndarray


def generate(generator: Mapping[str, Any]) -> RawData:
    """Make the data set that a card's ``generator`` describes.

    Parameters
    ----------
    generator : mapping
        ``{name: digit-segments}`` or ``{name: scenario, k: 1..4, n: 300, seed: 0, threshold: median}``.

    Raises
    ------
    DatasetError
        Unknown generator or argument.
    """
    arguments = {key: value for key, value in generator.items() if key != "name"}
    makers: dict[str, Callable[..., RawData]] = {"digit-segments": _digit_segments, "scenario": _scenario}
    if generator.get("name") not in makers:
        raise DatasetError(f"unknown generator {generator.get('name')!r}; there are {', '.join(makers)}")
    try:
        return makers[generator["name"]](**arguments)
    except TypeError as error:
        raise DatasetError(f"generator {generator['name']}: {error}") from None


def segments_of(digit: int) -> str:
    """Return the lit segments of a digit, as letters a to g."""
    return _SEGMENTS[digit]


def scenario_curve(k: int, x: Any) -> np.ndarray:
    """Return the true curve f_k(x) of scenario ``k``, as printed in section 2.1.1 of the MLWSE paper."""
    x = np.asarray(x, dtype=np.float64)
    if k == 1:
        steps = ((-2.0, x < -3), (2.55, x > -2), (-2.0, x > 0), (4.0, x > 2), (-1.0, x > 3))
        return sum((height * step for height, step in steps), np.zeros_like(x))
    if k == 2:
        return 5 + 0.4 * x - 0.36 * x**2 + 0.005 * x**3
    if k == 3:
        return 2.85 * np.sin(np.pi / 2 * x)
    if k == 4:
        return 3.85 * np.sin(3 * np.pi * x) * (x > 0)
    raise DatasetError(f"scenario {k!r}: there are the scenarios 1, 2, 3 and 4")


def sample_scenario(k: int, n: int = 300, seed: int = 0, threshold: str | float = "median") -> ScenarioSample:
    """Draw a sample of one of the four two-dimensional scenarios of the MLWSE paper (section 2.1.1).

    Parameters
    ----------
    k : {1, 2, 3, 4}
        Scenario.
    n : int, default 300
        Rows.
    seed : int, default 0
        Each scenario has a stream of its own below the seed: noise is not shared between them.
    threshold : {"median", "mean"} or float, default "median"
        Where the real value turns into a class; the paper does not say. ``median`` and ``mean`` are those
        of the scenario's distribution, not of the sample, so that the best possible classifier is the
        same in every sample: it predicts 1 where the curve is above the threshold (see
        :func:`bayes_accuracy`).

    Returns
    -------
    ScenarioSample
        ``X, y_real, Y, f``.
    """
    cut = scenario_threshold(k, threshold)
    if n < 1 or seed < 0:
        raise DatasetError(f"scenario: n must be at least 1 and seed at least 0, not {n} and {seed}")
    words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(k,))).random_raw(2 * n)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # inside (0, 1)
    x = 8 * uniform[:n] - 4
    f = scenario_curve(k, x)
    y_real = f + ndtri(uniform[n:])
    return ScenarioSample(x[:, None], y_real, (y_real > cut).astype(np.uint8)[:, None], f)


def bayes_accuracy(k: int, threshold: str | float = "median") -> float:
    """Return the accuracy of the best possible classifier: the mean over x of Phi(|f_k(x) - threshold|)."""
    x = (np.arange(400_000) + 0.5) / 50_000 - 4  # midpoints; no jump of a curve is one of them
    return float(ndtr(np.abs(scenario_curve(k, x) - scenario_threshold(k, threshold))).mean())


def scenario_threshold(k: int, threshold: str | float = "median") -> float:
    """Return the number above which a real value of scenario ``k`` counts as class 1."""
    if k not in _MEDIANS:
        raise DatasetError(f"scenario {k!r}: there are the scenarios 1, 2, 3 and 4")
    if isinstance(threshold, str):
        known = {"median": _MEDIANS, "mean": _MEANS}
        if threshold not in known:
            raise DatasetError(f"threshold {threshold!r} is not median, mean or a number")
        return known[threshold][k]
    return float(threshold)


def _scenario(k: int, n: int = 300, seed: int = 0, threshold: str | float = "median") -> RawData:
    sample = sample_scenario(k, n, seed, threshold)
    return RawData(X=sample.X, Y=sample.Y, feature_names=["x"], label_names=["above-threshold"], original_features=1)


def _digit_segments() -> RawData:
    """Return scikit-learn's 8 x 8 digits with the segments of the digit as labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    table = np.array([[letter in _SEGMENTS[d] for letter in "abcdefg"] for d in range(10)], dtype=np.uint8)
    return RawData(
        X=np.ascontiguousarray(digits.data, dtype=np.float64),
        Y=np.ascontiguousarray(table[digits.target]),
        feature_names=[f"pixel_{row}_{column}" for row in range(8) for column in range(8)],
        label_names=list("abcdefg"),
        original_features=64,
    )
