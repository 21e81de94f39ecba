"""MLflow model of a saved model ("models from code"): MLflow runs this file when the model is loaded."""

import mlflow

from multilab.models.pyfunc_model import MultiLabelModel

mlflow.models.set_model(MultiLabelModel())
