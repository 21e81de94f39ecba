"""Checks of the objects of a loaded model that compiled code, or a loop, takes as they are.

scikit-learn follows the node numbers of a tree, the indices of a sparse matrix and the counts of a support vector
machine without looking whether they are inside their arrays. A foreign file may hold any numbers, so these are checked
once, before anything is predicted.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import BaseEnsemble
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from multilab.methods.forests._deep_forest import Layer
from multilab.methods.forests.compact_forest import NODE, CompactForest, PackedForest
from multilab.methods.forests.imldf import IMLDF
from multilab.methods.forests.mldf import MLDF
from multilab.methods.forests.rf_pct import RFPCT

__all__ = ["check_objects"]

_SIDE = 2**24  # of a sparse matrix, and of what an attribute counts: more columns than any table has
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # a name of a file without a folder
_COUNTS = frozenset(
    {"n_labels", "n_labels_", "n_features", "n_features_", "n_features_in_", "n_outputs_", "n_trees_per_iteration_"}
)


def check_objects(model: Any) -> None:
    """Refuse a loaded model with an array that would make a prediction read beyond its end, or never end.

    Whatever is found in the model is checked: trees, forests, boosted trees, support vector machines, neighbours,
    sparse matrices, random states, counts, and attributes that hide a method. ``n_jobs`` beyond the processors of
    this machine becomes their number: the model may come from a larger one.

    Parameters
    ----------
    model : object

    Raises
    ------
    ValueError
        If an array or a number does not fit; the message is one line.
    """
    objects = list(_objects(model))
    checked: set[int] = set()
    for obj in objects:
        for kind, check in _CHECKS.items():
            if isinstance(obj, kind):
                checked.update(map(id, check(obj) or ()))
        _check_attributes(obj)
    # these take X as it is: what holds them has checked its width
    loose = {type(obj).__name__ for obj in objects if isinstance(obj, _HELD) and id(obj) not in checked}
    _require(not loose, f"{', '.join(sorted(loose))} where none belongs")


_HELD = (Tree, TreePredictor, CompactForest, Layer, _BinMapper)


def _objects(model: Any) -> Iterator[Any]:
    """Yield all objects that a model consists of, each once, however deep."""
    seen, rest = dict[int, Any](), [model]  # the values keep the objects alive, so that no number is used twice
    while rest:
        obj = rest.pop()
        if id(obj) in seen or isinstance(obj, str | bytes | bytearray | int | float | type | None):
            continue
        seen[id(obj)] = obj
        yield obj
        if isinstance(obj, dict):
            rest.extend([*obj.keys(), *obj.values()])
        elif isinstance(obj, list | tuple | set | frozenset):
            rest.extend(obj)
        elif isinstance(obj, np.ndarray):
            rest.extend(obj.ravel().tolist() if obj.dtype.hasobject else ())
        elif isinstance(obj, partial):
            rest.extend([obj.func, obj.args, obj.keywords])
        else:
            rest.extend(getattr(obj, "__dict__", {}).values())


def _require(holds: Any, reason: str) -> None:
    if not holds:
        raise ValueError(reason)


def _check_attributes(one: Any) -> None:
    """Refuse attributes in the place of a method or a property, counts beyond all bounds, and folders of caches."""
    attributes = getattr(one, "__dict__", None)
    if not isinstance(attributes, dict) or inspect.isfunction(one) or isinstance(one, np.ndarray | partial):
        return
    classes, class_lists = attributes.get("n_classes_"), attributes.get("classes_")
    if classes is not None and class_lists is not None:  # an array has a column for each
        listed = class_lists if isinstance(class_lists, list) else [class_lists]
        _require([*map(len, listed)] == np.ravel(classes).tolist(), f"{type(one).__name__} has other classes")
    for name, value in attributes.items():
        hidden = inspect.getattr_static(type(one), name, None)
        method = (callable(hidden) or hasattr(type(hidden), "__get__")) and not isinstance(hidden, cached_property)
        _require(not method, f"{type(one).__name__}.{name} is not the one of its class")
        if name in _COUNTS and value is not None:
            _require(_is_count(value, _SIDE), f"{type(one).__name__}.{name} is not a number of this size")
    _require(attributes.get("memory") is None, f"{type(one).__name__} has a folder for a cache")
    if type(one).__name__ == "Omikuji":  # its class needs a package that may be missing; it writes these files
        names = [*attributes.get("_files", {})]
        _require(all(isinstance(name, str) and _PLAIN.fullmatch(name) for name in names), "a file in another folder")
    jobs = attributes.get("n_jobs")
    if jobs is not None:
        _require(isinstance(jobs, int | np.integer), f"{type(one).__name__}.n_jobs is not a number")
        attributes["n_jobs"] = min(jobs, os.cpu_count() or 1)


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int | np.integer) and 0 <= int(value) <= most


def _integers(values: Any, low: int, high: int, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return an array of integers of at least ``low`` and below ``high``; refuse any other."""
    _require(isinstance(values, np.ndarray) and values.dtype.kind in "iu", f"{name}: not an array of integers")
    _require(shape is None or values.shape == shape, f"{name}: not of shape {shape}")
    _require(not values.size or (values.min() >= low and values.max() < high), f"{name}: out of range")
    return values


def _check_nodes(left: np.ndarray, right: np.ndarray, leaf: np.ndarray, feature: np.ndarray, n_features: int) -> int:
    """Refuse nodes that are not those of one tree, numbered from the root downwards; return its depth."""
    n = len(left)
    _require(n > 0, "a tree without nodes")
    inner = np.flatnonzero(~leaf)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    _require(not children.size or (children.min() > 0 and children.max() < n), "a tree with a child out of range")
    # numbers that only grow exclude a cycle, in which a prediction would never end
    _require((children > np.tile(inner, 2)).all(), "a tree with a child before its parent")
    _require((np.bincount(children, minlength=n) <= 1).all(), "a tree with a child of two parents")
    columns = feature[inner]
    _require(
        not columns.size or (columns.min() >= 0 and columns.max() < n_features), "a tree with a feature out of range"
    )
    depth, level = 0, np.array([0])
    while len(level := level[~leaf[level]]):
        level = np.concatenate([left[level], right[level]]).astype(np.int64)
        depth += 1
    return depth


def _check_tree(tree: Tree) -> None:
    _require(tree.node_count == tree.capacity and tree.node_count > 0, "a tree of another number of nodes")
    _require(tree.n_outputs > 0 and tree.n_classes.min() > 0, "a tree without outputs")
    left, right = tree.children_left, tree.children_right
    depth = _check_nodes(left, right, left == -1, tree.feature, tree.n_features)
    _require(depth <= tree.max_depth < tree.node_count, "a tree of another depth than it says")


def _check_tree_estimator(model: Any) -> Iterable[Any]:
    tree = getattr(model, "tree_", None)
    if tree is None:
        return ()
    _require(
        isinstance(tree, Tree) and tree.n_features == vars(model).get("n_features_in_"), "a tree of other features"
    )
    _require(tree.n_outputs == vars(model).get("n_outputs_"), "a tree of other outputs")
    return (tree,)


def _check_ensemble(model: Any) -> None:
    if isinstance(model, BaseForest | BaseGradientBoosting) and "estimators_" in vars(model):
        trees = list(np.ravel(np.asarray(model.estimators_, dtype=object)))
        wanted = vars(model).get("n_features_in_")
        _require(
            trees and all(isinstance(t, BaseDecisionTree) and vars(t).get("n_features_in_") == wanted for t in trees),
            "a forest with trees of other features",
        )


def _check_boosting(model: Any) -> None:
    if "estimators_" not in vars(model):
        return
    trees, classes = model.estimators_, getattr(model, "n_classes_", 1)
    width = classes if isinstance(classes, int | np.integer) and classes > 2 else 1
    _require(isinstance(trees, np.ndarray) and trees.ndim == 2, "boosted trees in another form")
    _require(
        trees.shape[1] == width == vars(model).get("n_trees_per_iteration_", width), "boosted trees of other classes"
    )
    _require(all(tree.tree_.n_outputs == 1 and tree.tree_.max_n_classes == 1 for tree in trees.flat), "boosted classes")
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))
    _require(start.shape == (1, width), "boosted trees of other classes")


def _check_histogram_boosting(model: Any) -> Iterable[Any]:
    if "_predictors" not in vars(model):
        return ()
    mapper, width = vars(model).get("_bin_mapper"), vars(model).get("_n_features")
    _require(isinstance(mapper, _BinMapper) and _is_count(width, _SIDE), "boosted trees without bins")
    encoder, n_features = vars(model).get("_preprocessor"), _width(model)
    encoded = n_features if encoder is None else encoder.transform(np.zeros((1, n_features))).shape[1]
    _require(width == encoded, "boosted trees of other features")
    categorical = _integers(mapper.is_categorical_, 0, 2, "categorical features", (width,))
    bins = mapper.bin_thresholds_
    _require(isinstance(bins, list) and len(bins) == width, "boosted trees with other bins")
    for column in np.flatnonzero(categorical):
        values = np.asarray(bins[column], dtype=float)
        # the categories of a split are a set of 256 bits
        _require(((values >= 0) & (values < 256)).all(), "a category out of range")
    predictors = [predictor for step in model._predictors for predictor in step]
    for predictor in predictors:
        _require(isinstance(predictor, TreePredictor), "a boosted tree in another form")
        _check_predictor(predictor, categorical)
    return (mapper, *predictors)


def _check_predictor(predictor: TreePredictor, categorical: np.ndarray) -> None:
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    _require(isinstance(nodes, np.ndarray) and nodes.ndim == 1, "a boosted tree in another form")
    leaf = nodes["is_leaf"] != 0
    _check_nodes(nodes["left"], nodes["right"], leaf, nodes["feature_idx"], len(categorical))
    split = nodes[(nodes["is_categorical"] != 0) & ~leaf]
    _require(categorical[split["feature_idx"]].all(), "a split by categories of a number")
    _require(isinstance(sets, np.ndarray) and sets.ndim == 2 and sets.shape[1] == 8, "categories in another form")
    _require(not len(split) or split["bitset_idx"].max() < len(sets), "a category out of range")


def _check_compact(forest: CompactForest) -> None:
    nodes, leaves = forest.nodes, forest.leaves
    _require(isinstance(nodes, np.ndarray) and nodes.dtype == NODE and nodes.ndim == 1, "a forest in another form")
    _require(isinstance(leaves, np.ndarray) and leaves.ndim == 2 and leaves.dtype.kind == "f", "leaves in another form")
    _require(_is_count(forest.n_features, _SIDE), "a forest without a number of features")
    starts = _offsets(forest.starts, len(nodes))
    leaf_starts = _offsets(forest.leaf_starts, len(leaves))
    _require(len(starts) == len(leaf_starts), "a forest of two numbers of trees")
    _require(isinstance(forest.constant, np.ndarray) and forest.constant.ndim == 1, "labels in another form")
    _integers(forest.varied, 0, len(forest.constant), "labels that vary")
    for k in range(len(starts) - 1):
        tree = nodes[starts[k] : starts[k + 1]]
        leaf = tree["left"] == -1
        _check_nodes(tree["left"], tree["right"], leaf, tree["feature"], forest.n_features)
        rows = tree["feature"][leaf]
        _require(rows.min() >= 0 and rows.max() < leaf_starts[k + 1] - leaf_starts[k], "a leaf out of range")


def _offsets(values: Any, total: int) -> np.ndarray:
    """Return offsets that begin at 0, do not fall, and end at the number of rows."""
    _integers(values, 0, total + 1, "offsets of trees")
    right = values.ndim == 1 and len(values) and values[0] == 0 and values[-1] == total and (np.diff(values) >= 0).all()
    _require(right, "offsets of trees that are none")
    return values


def _check_forest(model: RFPCT) -> Iterable[Any]:
    forest = vars(model).get("forest_")
    if forest is None:
        return ()
    _require(isinstance(forest, CompactForest), "a forest in another form")
    _require(forest.n_features == vars(model).get("n_features_in_"), "a forest of other features")
    return (forest,)


def _width(model: Any) -> int:
    """Return the number of features of a fitted estimator, which scikit-learn compares with that of its input."""
    width = vars(model).get("n_features_in_")
    _require(_is_count(width, _SIDE), "an estimator without a number of features")
    return int(width or 0)


def _check_layer(layer: Layer, widths: list[int]) -> Iterable[Any]:
    """Return a layer and its forests; the forests of fold k read ``widths[k]`` features."""
    _require(isinstance(layer, Layer) and len(layer.forests) == len(widths), "a layer in another form")
    for row, width in zip(layer.forests, widths, strict=True):
        right = all(isinstance(forest, CompactForest) and forest.n_features == width for forest in row)
        _require(right, "a forest of other features")
    return (layer, *(forest for row in layer.forests for forest in row))


def _check_cascade(model: MLDF) -> Iterable[Any]:
    if "_first" not in vars(model):
        return ()
    d, first = _width(model), model._first
    _require(isinstance(first, Layer) and first.forests, "a cascade in another form")
    checked = [*_check_layer(first, [d] * len(first.forests))]
    width = d + sum(len(forest.constant) for forest in first.forests[0])
    for steps in model._steps.values():
        for step in steps:
            checked += _check_layer(step.layer, [width] * len(first.forests))
    return checked


def _check_interactions(model: IMLDF) -> Iterable[Any]:
    if "_last" not in vars(model):
        return ()
    d, first, last = _width(model), vars(model).get("_first"), model._last
    _require(isinstance(last, dict) and last, "a cascade in another form")
    row, checked = np.zeros((1, d), dtype=np.float32), list[Any]()
    inputs, extra = [row] * len(next(iter(last.values())).forests), np.empty((1, 0), dtype=np.float32)
    if first is not None:
        checked += _check_layer(first, [d] * len(first.forests))
        if model.add_probabilities:
            extra = np.zeros((1, len(first.forests[0][0].constant)), dtype=np.float32)
    for number in range(1, len(model.regions_) + 2):
        if number in last:
            checked += _check_layer(last[number], [array.shape[1] for array in inputs])
        if number <= len(model.regions_):
            inputs = model._next(row, inputs, model.regions_[number - 1], extra)
    return checked


def _check_packed(forest: PackedForest) -> None:
    _require(_is_count(forest.depth, len(forest.left)), "a forest that is deeper than it has nodes")


def _check_machine(model: BaseLibSVM) -> None:
    if "support_vectors_" not in vars(model):
        return
    vectors, coef = model.support_vectors_, model._dual_coef_
    classes = len(_integers(model._n_support, 0, _SIDE, "counts of support vectors"))
    n = int(model._n_support.sum())
    pairs = classes * (classes - 1) // 2
    if sp.issparse(vectors):
        _require(model.kernel != "precomputed", "sparse support vectors of a kernel matrix")  # libsvm follows values
        _require(
            vectors.shape[0] == n and sp.issparse(coef) and coef.shape == (classes - 1, n), "other support vectors"
        )
        _require(coef.nnz == (classes - 1) * n, "coefficients that are left out")
    else:
        of_kernel = model.kernel == "precomputed" or callable(model.kernel)
        _require(of_kernel or vectors.shape == (n, vars(model).get("n_features_in_")), "other support vectors")
        _require(isinstance(coef, np.ndarray) and coef.shape == (classes - 1, n), "other coefficients")
    _integers(model.support_, 0, int(model.shape_fit_[0]), "support vectors", (n,))
    _require("n_features_in_" in vars(model) and classes >= 2, "a machine of no features or classes")
    _require(np.shape(model._intercept_) == (pairs,), "other intercepts")
    _require(all(np.shape(p) in ((0,), (pairs,)) for p in (model._probA, model._probB)), "other probabilities")
    _require(np.shape(model._probA) == np.shape(model._probB), "other probabilities")


def _check_neighbours(model: KNeighborsClassifier | KNeighborsRegressor) -> None:
    if "_fit_X" not in vars(model):
        return
    rows, width = model._fit_X.shape
    _require(width == vars(model).get("n_features_in_"), "neighbours of other features")
    _require(_is_count(model.n_neighbors, rows), "more neighbours than rows")
    if isinstance(model, KNeighborsClassifier):
        classes = model.classes_ if model.outputs_2d_ else [model.classes_]
        _require(all(len(values) <= rows for values in classes), "more classes than neighbours")
        if not model.outputs_2d_:
            _integers(model._y, 0, len(model.classes_), "classes of neighbours", (rows,))


def _check_categories(model: OneHotEncoder) -> None:
    """Refuse categories that would get another column of the sparse output than those of their feature."""
    if "categories_" not in vars(model):
        return
    sizes = np.array([len(values) for values in model.categories_])
    dropped = model._drop_idx_after_grouping
    groups = model._default_to_infrequent_mappings if model._infrequent_enabled else [None] * len(sizes)
    _require(len(groups) == len(sizes) == _width(model), "categories of other features")
    for j, group in enumerate(groups):
        if group is not None:
            _integers(group, 0, sizes[j], "groups of categories", (sizes[j],))
            sizes[j] = group.max() + 1
    if dropped is not None:
        _require(len(dropped) == len(sizes), "dropped categories of other features")
        for j, category in enumerate(dropped):
            _require(
                category is None or (isinstance(category, int | np.integer) and 0 <= category < sizes[j]),
                "a dropped category",
            )
            sizes[j] -= category is not None
    _require(model._n_features_outs == sizes.tolist(), "categories with columns of others")


def _check_sparse(matrix: Any) -> None:
    _require(matrix.format in ("csr", "csc"), f"a sparse matrix in the form {matrix.format}")
    # the full check compares every index with the shape
    matrix.check_format(full_check=True)
    _require(max(matrix.shape) <= max(_SIDE, len(matrix.indptr)), "a sparse matrix of too many columns")


def _check_random_state(state: Any) -> None:
    position = state.get_state(legacy=False)["state"]["pos"]
    # the generator has 624 words, and compiled code reads the one at this position
    _require(0 <= position <= 624, "a random state out of range")


_CHECKS: dict[type, Callable[[Any], Iterable[Any] | None]] = {
    Tree: _check_tree,
    BaseDecisionTree: _check_tree_estimator,
    BaseEnsemble: _check_ensemble,
    BaseGradientBoosting: _check_boosting,
    BaseHistGradientBoosting: _check_histogram_boosting,
    CompactForest: _check_compact,
    RFPCT: _check_forest,
    MLDF: _check_cascade,
    IMLDF: _check_interactions,
    PackedForest: _check_packed,
    BaseLibSVM: _check_machine,
    KNeighborsClassifier: _check_neighbours,
    KNeighborsRegressor: _check_neighbours,
    OneHotEncoder: _check_categories,
    sp.sparray: _check_sparse,
    sp.spmatrix: _check_sparse,
    np.random.RandomState: _check_random_state,
}
