"""RAkELd: a partition, its limits, crisp scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.ensembles.rakel_d import RAkELd
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.label_powerset import LabelPowerset


@pytest.mark.parametrize(("q", "sizes"), [(4, [4]), (6, [4, 2]), (11, [4, 4, 3]), (3, [3])])
def test_every_label_is_in_exactly_one_part(q: int, sizes: list[int]) -> None:
    X, Y, X_test = make_data(q=q)
    model = RAkELd(random_state=1).fit(X, Y)
    assert sorted(label for part in model.parts_ for label in part) == list(range(q))
    assert sorted(map(len, model.parts_), reverse=True) == sizes
    scores, decisions = model.predict_with_scores(X_test)
    np.testing.assert_array_equal(scores, decisions)
    parts = {tuple(map(tuple, RAkELd(random_state=seed).fit(X, Y).parts_)) for seed in range(5)}
    assert len(parts) > 1 or q <= 4


def test_one_part_is_a_label_powerset_and_single_labels_are_binary_relevance() -> None:
    X, Y, X_test = make_data(n=120)
    tree = DecisionTreeClassifier(random_state=0, max_depth=4)

    def seeded(model: RAkELd) -> DecisionTreeClassifier:
        return model._members.inputs.base  # the tree with the seed it was given

    powerset = RAkELd(tree, k=4, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(powerset.predict(X_test), LabelPowerset(seeded(powerset)).fit(X, Y).predict(X_test))
    single = RAkELd(tree, k=1, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(single.predict(X_test), BinaryRelevance(seeded(single)).fit(X, Y).predict(X_test))


def test_k_must_be_positive() -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="k=0"):
        RAkELd(k=0).fit(X, Y)
