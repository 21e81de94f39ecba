"""Synthetic and embedded datasets: digit segments, toy genes, toy topics, and four scenarios.

Random numbers are raw PCG64 output, which no NumPy version changes; ``X`` and ``Y`` are the same on all
machines. The toy genes and the toy topics are computed in integers, so that no rounding is involved either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, ndtri

from multilab.datasets.errors import DatasetError
from multilab.datasets.raw_data import RawData

# Segment a is the upper bar, then clockwise b, c, d (lower bar), e, f, and g in the middle. 6 and 9 have
# their tails (a is lit for 6, d for 9) and 7 is the short form without f.
_SEGMENTS = ("abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg")

# Toy genes: one row per label, its weights of the four hidden processes; the share of rows that have it, in per cent.
_PROCESSES = ("growth", "stress", "repair", "transport")
_GENE_LABELS = {
    "division": ((3, 0, 0, 0), 40),
    "ribosome": ((2, -2, 0, 0), 30),
    "stress-response": ((0, 3, 0, 0), 45),
    "heat-shock": ((0, 2, 1, 0), 25),
    "dna-repair": ((0, 1, 3, 0), 35),
    "membrane": ((0, 0, -1, 3), 30),
    "signalling": ((1, 1, 0, 2), 20),
}

# Toy topics: every topic has its own vocabulary, and its partner occurs in a third of its documents.
_TOPIC_PARTNERS = {
    "politics": "economy",
    "economy": "trade",
    "trade": "politics",
    "science": "health",
    "health": "science",
    "sport": "health",
    "culture": "travel",
    "travel": "culture",
}
_TERMS_PER_TOPIC = 12  # part of the definition of topics-toy, as the next number
_COMMON_TERMS = 54

# Solutions t of mean_x Phi(t - f_k(x)) = 1/2 over x uniform on [-4, 4]; a test recomputes them.
_MEDIANS = {1: 1.5819915110529592, 2: 3.5172504898348803, 3: 0.0, 4: 0.0}
_MEANS = {1: 1.5375, 2: 3.08, 3: 0.0, 4: 0.0}


class ScenarioSample(NamedTuple):
    """Sample of a scenario.

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
    """Return the dataset of a card's ``generator``.

    Parameters
    ----------
    generator : mapping
        ``{name: digit-segments}``, ``{name: genes, n: 300, seed: 0}``, ``{name: topics, n: 300, seed: 0}`` or
        ``{name: scenario, k: 1..4, n: 300, seed: 0, threshold: median}``.

    Raises
    ------
    DatasetError
        If the generator or an argument is unknown.
    """
    arguments = {key: value for key, value in generator.items() if key != "name"}
    makers: dict[str, Callable[..., RawData]] = {
        "digit-segments": _digit_segments,
        "genes": _genes,
        "scenario": _scenario,
        "topics": _topics,
    }
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
    """Return the true curve f_k(x) of scenario ``k``, of section 2.1.1 of the MLWSE paper."""
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
    """Return a sample of one of the four two-dimensional scenarios of the MLWSE paper (section 2.1.1).

    Parameters
    ----------
    k : {1, 2, 3, 4}
        Scenario.
    n : int, default 300
        Number of rows.
    seed : int, default 0
        Seed. Each scenario has its own random stream, so that noise is not shared between them.
    threshold : {"median", "mean"} or float, default "median"
        Threshold above which a real value is class 1; the paper does not define it. ``median`` and ``mean`` are those
        of the scenario's distribution, not of the sample, so that the best possible classifier is the same in every
        sample: it predicts 1 where the curve is above the threshold (see :func:`bayes_accuracy`).

    Returns
    -------
    ScenarioSample
        ``X, y_real, Y, f``.

    Examples
    --------
    >>> from multilab.datasets import sample_scenario
    >>> sample = sample_scenario(1, n=200)
    >>> sample.X.shape, sample.Y.shape, float(sample.Y.mean())
    ((200, 1), (200, 1), 0.45)
    """
    cut = scenario_threshold(k, threshold)
    if n < 1 or seed < 0:
        raise DatasetError(f"scenario: n must be at least 1 and seed at least 0, not {n} and {seed}")
    numbers = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(k,))).random_raw(2 * n)
    uniform = ((numbers >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # inside (0, 1)
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


def _bit_generator(stream: str, n: int, seed: int) -> np.random.PCG64:
    """Return the bit generator of a toy dataset; its output is the same in all NumPy versions."""
    if n < 20 or seed < 0:
        raise DatasetError(f"{stream}: n must be at least 20 and seed at least 0, not {n} and {seed}")
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(stream.encode())))


def _bell(bits: np.random.PCG64, rows: int, columns: int) -> np.ndarray:
    """Return integers with a bell-shaped distribution: mean 0, standard deviation 37 837, at most 131 070.

    Each is the sum of the four 16-bit quarters of a 64-bit number, minus its mean.
    """
    word = bits.random_raw(rows * columns).reshape(rows, columns)
    quarters = [((word >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64) for shift in (0, 16, 32, 48)]
    return quarters[0] + quarters[1] + quarters[2] + quarters[3] - 131_070


def _genes(n: int = 300, seed: int = 0) -> RawData:
    """Return toy genes: 20 noisy conditions show four hidden processes, on which the labels depend.

    A label holds for the rows with the largest weighted sums of the processes. The third process enters the conditions
    by its size alone, so that no linear model sees all of it. Every label also leans towards the one before it. All is
    integer arithmetic; ``X`` is in units of 2**-16.
    """
    bits = _bit_generator("genes", n, seed)
    hidden = _bell(bits, n, len(_PROCESSES))
    mixing = (bits.random_raw(len(_PROCESSES) * 20) % np.uint64(7)).astype(np.int64).reshape(len(_PROCESSES), 20) - 3
    shown = hidden.copy()
    shown[:, 2] = np.abs(hidden[:, 2]) - 30_000
    X = (shown @ mixing + 2 * _bell(bits, n, 20)).astype(np.float64) / 65_536
    Y = np.zeros((n, len(_GENE_LABELS)), dtype=np.uint8)
    noise = _bell(bits, n, len(_GENE_LABELS))
    for label, (weights, share) in enumerate(_GENE_LABELS.values()):
        level = hidden.copy()
        level[:, 2] = shown[:, 2]
        total = 2 * (level @ np.array(weights, dtype=np.int64)) + noise[:, label]
        if label:
            total += 60_000 * Y[:, label - 1].astype(np.int64)
        cut = np.sort(total)[n - share * n // 100]
        Y[:, label] = total >= cut
    names = [f"condition_{number}" for number in range(1, 21)]
    return RawData(X=X, Y=Y, feature_names=names, label_names=list(_GENE_LABELS), original_features=20)


def _topics(n: int = 300, seed: int = 0) -> RawData:
    """Return toy topics: counts of 150 terms in ``n`` documents about one to three of eight topics, as CSR.

    A document has 15 to 45 terms: half of them are common, the others belong to its topics. A term of a topic is
    also used, one time in four, by the documents of the topic before it.
    """
    bits = _bit_generator("topics", n, seed)
    topics = list(_TOPIC_PARTNERS)
    partner = [topics.index(name) for name in _TOPIC_PARTNERS.values()]
    counts = np.zeros((n, _TERMS_PER_TOPIC * len(topics) + _COMMON_TERMS))
    Y = np.zeros((n, len(topics)), dtype=np.uint8)

    def below(bound: int) -> int:
        return int(bits.random_raw()) % bound

    for row in range(n):
        subject = below(8)
        about = {subject, partner[subject]} if below(3) == 0 else {subject}
        if below(6) == 0:
            about.add(below(8))
        ordered = sorted(about)
        Y[row, ordered] = 1
        for _ in range(15 + below(31)):
            if below(2):
                word = _TERMS_PER_TOPIC * len(topics) + min(below(_COMMON_TERMS), below(_COMMON_TERMS))
            else:
                topic = (ordered[below(len(ordered))] + (below(4) == 0)) % len(topics)
                word = _TERMS_PER_TOPIC * topic + min(below(_TERMS_PER_TOPIC), below(_TERMS_PER_TOPIC))
            counts[row, word] += 1
    names = [f"{topic}_{number}" for topic in topics for number in range(1, _TERMS_PER_TOPIC + 1)]
    names += [f"common_{number}" for number in range(1, _COMMON_TERMS + 1)]
    X = sp.csr_array(counts)
    return RawData(X=X, Y=Y, feature_names=names, label_names=topics, original_features=len(names))


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
