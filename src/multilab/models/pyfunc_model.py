"""Saved model as MLflow's ``python_function``: data frames in, a data frame with label names out."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from mlflow.pyfunc import PythonModel

from multilab.core import MultilabError
from multilab.models.saved_model import SavedModel

__all__ = ["MultiLabelModel", "RefusedInputError"]


class RefusedInputError(MlflowException):
    """Input that the model cannot predict: over HTTP status 400 with one line.

    MLflow's server puts the data frame before the message; the reply has the message alone.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, error_code=INVALID_PARAMETER_VALUE)
        self.reason = reason

    def serialize_as_json(self) -> str:
        """Return the reply: error code and message."""
        return json.dumps({"error_code": self.error_code, "message": self.reason})


class _Prediction:
    """Methods of the model, in a class of their own: MLflow warns of any `predict` that a `PythonModel` defines without
    annotations in the form that it takes for a schema.
    """

    def load_context(self, context: Any) -> None:
        """Load the model from the artifacts."""
        self.model = SavedModel.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        """Return decisions and probabilities, see `SavedModel.predict_frame`."""
        rows = model_input if isinstance(model_input, pd.DataFrame) else pd.DataFrame(model_input)
        try:
            return self.model.predict_frame(rows)
        except MultilabError as error:
            raise RefusedInputError(str(error)) from None


class MultiLabelModel(_Prediction, PythonModel):
    """The ``python_function`` of a saved model."""
