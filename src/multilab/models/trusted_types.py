"""Lists of the classes that the file of a foreign model may name: nothing else is trusted.

A skops file is a tree of nodes. Each names a loader of skops, a module and a class; some loaders call what they name.
So a name is trusted for a loader, never in general: :data:`TRUSTED` has the loaders that saved models need, and a
loader that is not there, such as ``ConstructorFromReduceNode``, is refused whatever it names.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os

from sklearn.base import BaseEstimator
from sklearn.utils.discovery import all_estimators

from multilab.core.text import comma_separated
from multilab.methods.discovery import public_classes

__all__ = ["TRUSTED", "TRUSTED_VARIABLE", "is_estimator", "is_trusted", "trusted_by_user"]

TRUSTED_VARIABLE = "MULTILAB_TRUSTED_TYPES"
"""Environment variable with further trusted classes: their dotted paths, separated by commas."""

_PARTS = frozenset(
    {
        *(f"multilab.cells.features.{name}" for name in ("Columns", "Scaling")),
        *(f"multilab.cells.pipeline.{name}" for name in ("MemberScores", "MethodPipeline")),
        "multilab.decision._held_out._Precomputed",
        *(f"multilab.decision.calibrated.{name}" for name in ("_Isotonic", "_LabelByLabel", "_Levels", "_Logistic")),
        *(f"multilab.decision.metric_stack.{name}" for name in ("LabelSetModel", "_Threshold", "_Top")),
        "multilab.methods.bayes._gaussian.LabelGaussians",
        *(f"multilab.methods.ensembles._label_groups.{name}" for name in ("FittedGroups", "_Powerset", "_SingleLabel")),
        *(f"multilab.methods.ensembles.adaboost_mh.{name}" for name in ("StumpRound", "StumpSplit")),
        "multilab.methods.forests._deep_forest.Layer",
        *(f"multilab.methods.forests.compact_forest.{name}" for name in ("CompactForest", "PackedForest")),
        "multilab.methods.forests.interactions.Regions",
        "multilab.methods.forests.mldf._Step",
        "multilab.methods.mixed_scaler.MixedScaler",
        "multilab.methods.word_weights.WordWeights",
        "multilab.methods.neighbours._search._ExactSearch",
        "multilab.methods.reduction.kernel_reducer.Centring",
        *(f"multilab.methods.stacking._combinations.{name}" for name in ("Calibration", "Combination")),
        "multilab.methods.stacking.distilled_stack.KernelRegression",
        *(f"multilab.methods.transformation._binary.{name}" for name in ("Sigmoid", "_Constant", "_Machine", "_Model")),
        *(
            f"multilab.methods.transformation._inputs.{name}"
            for name in ("_Features", "_SharedKernel", "_TreeFeatures")
        ),
        "multilab.methods.transformation._label_sets.SetModel",
        "sklearn._loss.link.Interval",
        *(f"sklearn._loss.link.{name}" for name in ("HalfLogitLink", "IdentityLink", "LogLink", "LogitLink")),
        "sklearn._loss.link.MultinomialLogit",
        *(f"sklearn._loss.loss.{name}" for name in ("ExponentialLoss", "HalfBinomialLoss", "HalfMultinomialLoss")),
        *(f"sklearn._loss.loss.{name}" for name in ("AbsoluteError", "HalfGammaLoss", "HalfPoissonLoss")),
        *(f"sklearn._loss.loss.{name}" for name in ("HalfSquaredError", "PinballLoss")),
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    }
)
"""Parts of fitted estimators, which are no estimators themselves."""

_EXPORTING = ("multilab.methods", "multilab.decision")
_NOT_OURS = frozenset({"PretrainedBinaryRelevance"})
"""Our estimators that a file must not name: they read a file whose path is one of their settings."""

# Estimators that neither call a function nor read a file that is one of their settings, and whose compiled code is
# memory-safe for any array, or after `multilab.models.loaded_objects` has checked theirs.
_SKLEARN = frozenset(
    {
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "BaggingClassifier",
        "BaggingRegressor",
        "BernoulliNB",
        "Binarizer",
        "ClassifierChain",
        "ComplementNB",
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "DummyClassifier",
        "DummyRegressor",
        "ElasticNet",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "GaussianNB",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        "IsotonicRegression",
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "LabelBinarizer",
        "LabelEncoder",
        "Lasso",
        "LinearDiscriminantAnalysis",
        "LinearRegression",
        "LinearSVC",
        "LinearSVR",
        "LogisticRegression",
        "LogisticRegressionCV",
        "MLPClassifier",
        "MLPRegressor",
        "MaxAbsScaler",
        "MinMaxScaler",
        "MultiLabelBinarizer",
        "MultiOutputClassifier",
        "MultiOutputRegressor",
        "MultinomialNB",
        "NearestCentroid",
        "Normalizer",
        "NuSVC",
        "OneHotEncoder",
        "OneVsRestClassifier",
        "OrdinalEncoder",
        "PCA",
        "PassiveAggressiveClassifier",
        "Perceptron",
        "Pipeline",
        "PowerTransformer",
        "QuadraticDiscriminantAnalysis",
        "QuantileTransformer",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "Ridge",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "RidgeCV",
        "RobustScaler",
        "SGDClassifier",
        "SGDRegressor",
        "SVC",
        "SimpleImputer",
        "StandardScaler",
        "TruncatedSVD",
        "VarianceThreshold",
    }
)

_SCALARS = frozenset(
    f"numpy.{name}"
    for name in (
        *("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "str_"),
    )
)

TRUSTED: dict[str, frozenset[str]] = {
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "JsonNode": frozenset({"builtins.str"}),
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "NdArrayNode": frozenset({"numpy.ndarray", *_SCALARS}),
    "SparseMatrixNode": frozenset(
        f"scipy.sparse._{form}.{form}_{kind}" for form in ("csr", "csc") for kind in ("array", "matrix")
    ),
    "TypeNode": frozenset({"builtins.bool", "builtins.float", "builtins.int", "builtins.str", *_SCALARS}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "LossNode": frozenset(
        {
            *(f"sklearn._loss._loss.Cy{name}" for name in ("ExponentialLoss", "HalfBinomialLoss", "PinballLoss")),
            *(f"sklearn._loss._loss.Cy{name}" for name in ("AbsoluteError", "HalfGammaLoss", "HalfPoissonLoss")),
            *(f"sklearn._loss._loss.Cy{name}" for name in ("HalfMultinomialLoss", "HalfSquaredError", "HuberLoss")),
            *(f"sklearn.linear_model._sgd_fast.{name}" for name in ("EpsilonInsensitive", "Hinge", "ModifiedHuber")),
            *(f"sklearn.linear_model._sgd_fast.{name}" for name in ("SquaredEpsilonInsensitive", "SquaredHinge")),
        }
    ),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    # Functions of an array of scores, which a calibration or a decision refers to; no other function may be named.
    "FunctionNode": frozenset(
        {
            *(f"multilab.decision.calibrated.{name}" for name in ("_line", "_log_odds", "beta_features")),
            "multilab.decision.metric_stack._expected_f1",
        }
    ),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "PartialNode": frozenset({"functools.partial"}),
    "ObjectNode": _PARTS,
}
"""Loader of skops -> dotted names that it may load. Estimators (:func:`is_estimator`) come on top for ``ObjectNode``,
and classes that the user trusts (:func:`trusted_by_user`) for ``ObjectNode`` and ``TypeNode``."""


def is_trusted(loader: str, name: str) -> bool:
    """Return whether a loader of skops may load what a dotted name stands for."""
    if loader not in TRUSTED:
        return False
    if name in TRUSTED[loader]:
        return True
    return (loader == "ObjectNode" and is_estimator(name)) or (
        loader in ("ObjectNode", "TypeNode") and name in trusted_by_user()
    )


def is_estimator(name: str) -> bool:
    """Return whether a dotted name is one of our estimators, or a trusted estimator of scikit-learn.

    A class has two names: one by its module, and one by the package that exports it.
    """
    module, _, attribute = name.rpartition(".")
    if module.startswith("sklearn."):
        return name in _sklearn_names()
    defining_module = _our_estimators().get(attribute)
    return (
        defining_module is not None
        and module in (defining_module, *_EXPORTING)
        and attribute not in _NOT_OURS
        and _is_estimator(defining_module, attribute)
    )


def trusted_by_user() -> frozenset[str]:
    """Return the classes of :data:`TRUSTED_VARIABLE`; a name there that is not one of a class counts for nothing."""
    return frozenset(filter(_is_class, comma_separated(os.environ.get(TRUSTED_VARIABLE, ""))))


@functools.cache
def _our_estimators() -> dict[str, str]:
    return public_classes() | public_classes("decision")


@functools.cache
def _is_estimator(module: str, attribute: str) -> bool:
    try:
        thing = getattr(importlib.import_module(module), attribute)
    except ImportError:  # of a package that is not installed
        return False
    return inspect.isclass(thing) and issubclass(thing, BaseEstimator)


@functools.cache
def _sklearn_names() -> frozenset[str]:
    classes = [cls for name, cls in all_estimators() if name in _SKLEARN]
    return frozenset(
        f"{module}.{cls.__name__}" for cls in classes for module in (cls.__module__, cls.__module__.partition("._")[0])
    )


@functools.cache
def _is_class(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return inspect.isclass(getattr(importlib.import_module(module), attribute, None))
    except Exception:  # of the user's module, or of a name that is no path
        return False
