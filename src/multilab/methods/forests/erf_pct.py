"""ERF-PCT: extremely randomised forest of predictive clustering trees."""

from typing import ClassVar

from multilab.methods.forests.compact_forest import Kind
from multilab.methods.forests.rf_pct import RFPCT

__all__ = ["ERFPCT"]


class ERFPCT(RFPCT):
    """Extremely randomised forest of predictive clustering trees.

    Differs from `RFPCT` in that each tree is fitted on all training rows and tries one random threshold per candidate
    feature. Parameters and attributes are those of `RFPCT`.

    References
    ----------
    D. Kocev, M. Ceci, T. Stepisnik. Ensembles of extremely randomized predictive clustering trees for predicting
    structured outputs. Machine Learning 109, 2020, 2213-2241.

    Examples
    --------
    >>> from multilab.methods import ERFPCT
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ERFPCT(n_estimators=20, random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    _kind: ClassVar[Kind] = "extra"
