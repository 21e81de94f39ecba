"""Arrays of other namespaces than NumPy's (array API standard): inputs are converted, outputs are converted back.

The computation is NumPy's and SciPy's: exact distances (`scipy.spatial`), factorisations (`scipy.linalg`), sparse
products and scikit-learn's base learners take NumPy arrays only. An array in the memory of the host is used without a
copy where its library shares it by DLPack; one on another device is copied to the host, and the result back.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


def namespace_of(X: Any) -> Any | None:
    """Return the module of an array that is not NumPy's and follows the array API standard, else None.

    PyTorch's tensors do not name their namespace; it is their module.
    """
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack__"):
        return None
    if hasattr(X, "__array_namespace__"):
        return X.__array_namespace__()
    return sys.modules[type(X).__module__.partition(".")[0]]


def to_numpy(X: Any) -> Any:
    """Return an array of another namespace as a NumPy array; anything else as it is."""
    if namespace_of(X) is None:
        return X
    try:
        return np.from_dlpack(X)
    except (BufferError, RuntimeError, TypeError, ValueError):  # on another device, or a type that DLPack has not
        return np.from_dlpack(X, device="cpu") if X.__dlpack_device__()[0] != 1 else np.asarray(X)


def keep_namespace(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of an estimator return arrays of the namespace and device of its argument X.

    The method itself sees NumPy arrays only. Tuples are converted item by item.
    """

    @wraps(method)
    def converted(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        namespace = namespace_of(X)
        if namespace is None:
            return method(self, X, *arguments, **options)

        def native(values: Any) -> Any:
            numbers = values.dtype.kind in "biufc"  # classes of a binary problem may be text
            return namespace.asarray(values, device=X.device) if numbers else values

        result = method(self, to_numpy(X), *arguments, **options)
        return tuple(map(native, result)) if isinstance(result, tuple) else native(result)

    return converted
