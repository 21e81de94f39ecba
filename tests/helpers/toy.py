"""Small random data."""

from __future__ import annotations

import numpy as np


def make_data(n: int = 200, d: int = 12, q: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X[:, :q] + 0.7 * rng.normal(size=(n, q)) > 0.4).astype(np.uint8)
    return X, Y


def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(230, 12))
    text = (rng.random((230, 30)) < 0.2) * rng.integers(1, 4, size=(230, 30))
    return {
        "continuous": plain,
        "binary, many ties": (plain > 0.6).astype(float),
        "normalised text": text / np.maximum(np.linalg.norm(text, axis=1, keepdims=True), 1e-9),
        "duplicates": np.repeat(plain[:23], 10, axis=0),
        "far from the origin": 1e6 + plain.round(1),
        "one outlier": np.vstack([plain, 1e7 * np.ones((1, 12))]),
        "one point": np.ones((40, 3)),
        "thirds": rng.integers(3, size=(230, 5)) / 3.0,
    }
