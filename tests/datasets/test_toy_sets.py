"""Toy genes and toy topics: the same bytes everywhere, correlated labels that can be learned."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from multilab.datasets import DatasetError, card, load
from multilab.datasets.synthetic import generate
from multilab.model_selection import splits

# sha256 of the matrices as little-endian bytes. They were computed once; a generator that gives others on some
# processor, Python or NumPy breaks the gate there.
PINNED = {
    "genes": {
        "X": "26aa4c600dc207975a6ec1e255e6f6eabc3129a2bd6811838f743c65c35d2306",
        "Y": "00c825fc338c98becdaac30bd6d603147f8dbdffa9a61f627dd5d04a61e32ec3",
    },
    "topics": {
        "X": "4c8b2bda8de22c67e5e7075461a0bbf578608c471dcd5b707a7e1fc18d23542c",
        "Y": "a75bb359b2ec4c4d8c806f16785057d144c9fe3e1cb0abda351d4f3ab335fdaf",
    },
}
DIGESTS = """
import hashlib, sys
import numpy as np
from multilab.datasets.synthetic import generate
raw = generate({"name": sys.argv[1], "n": 300, "seed": 0})
X = raw.X.toarray() if hasattr(raw.X, "toarray") else raw.X
for matrix, kind in ((X, "<f8"), (raw.Y, "u1")):
    print(hashlib.sha256(np.ascontiguousarray(matrix, dtype=kind).tobytes()).hexdigest())
"""


def digests(name: str, **environment: str) -> dict[str, str]:
    """Return the digests of X and Y as a new process computes them."""
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, name],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip("XY", done.stdout.split(), strict=True))


@pytest.mark.parametrize("name", PINNED)
@pytest.mark.parametrize("core", ["Haswell", "Sandybridge", "no vector instructions"])
def test_the_bytes_are_the_same_on_every_processor(name, core):
    if core == "no vector instructions":
        from numpy._core._multiarray_umath import __cpu_dispatch__

        environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__)}
    else:
        environment = {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "2"}
    assert digests(name, **environment) == PINNED[name]


@pytest.mark.parametrize("name", ["genes-toy", "topics-toy"])
def test_the_cards_pin_the_digest(name):
    assert load(name).digest == card(name).digest
    assert card(name).files == ()


@pytest.mark.parametrize("name", ["genes-toy", "topics-toy"])
def test_labels_are_correlated_and_none_is_rare_or_constant(name):
    Y = load(name).Y.astype(float)
    assert 6 <= Y.shape[1] <= 10
    assert Y.mean(axis=0).min() > 0.1
    assert Y.mean(axis=0).max() < 0.5
    pairs = [abs(np.corrcoef(Y[:, a], Y[:, b])[0, 1]) for a, b in itertools.combinations(range(Y.shape[1]), 2)]
    independent = 4 / np.sqrt(len(Y))  # four standard errors of the correlation of independent labels
    assert sum(pair > independent for pair in pairs) >= 2


@pytest.mark.parametrize("name", ["genes-toy", "topics-toy"])
def test_labels_can_be_learned_from_the_features(name):
    """A plain linear model finds every label on rows that it was not fitted on."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    data = load(name)
    for label in data.Y.T:
        model = LogisticRegression(max_iter=2000).fit(data.X[:200], label[:200])
        assert roc_auc_score(label[200:], model.decision_function(data.X[200:])) > 0.65


def test_topics_are_sparse_counts_with_an_official_split():
    data = load("topics-toy")
    assert sp.issparse(data.X)
    assert data.X.nnz < 0.2 * np.prod(data.X.shape)
    assert np.array_equal(data.X.data, np.round(data.X.data))
    (official,) = splits("topics-toy", {"split": "official"})
    assert official.name == "official"
    assert np.array_equal(official.train, np.arange(200))
    assert np.array_equal(official.test, np.arange(200, 300))


@pytest.mark.parametrize("name", ["genes", "topics"])
def test_generators_are_seeded_and_refuse_wrong_arguments(name):
    one, same, other = (generate({"name": name, "n": 40, "seed": seed}) for seed in (3, 3, 4))
    assert np.array_equal(one.Y, same.Y)
    assert (one.X != same.X).sum() == 0
    assert not np.array_equal(one.Y, other.Y)
    for wrong in ({"n": 3}, {"seed": -1}):
        with pytest.raises(DatasetError, match="n must be at least 20 and seed at least 0"):
            generate({"name": name, **wrong})
