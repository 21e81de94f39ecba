"""A classifier that reads a file, for the class that runs pretrained networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from sklearn.linear_model import LogisticRegression

__all__ = ["FileClassifier"]


class FileClassifier(LogisticRegression):
    """Logistic regression that reads the file ``model_path`` first, as a pretrained network does."""

    FILE = str(Path(__file__).resolve())

    def __init__(self, *, C: float = 1.0, model_path: Any = None, allow_auto_download: bool = True) -> None:
        super().__init__(C=C)
        self.model_path = model_path
        self.allow_auto_download = allow_auto_download

    def fit(self, X: Any, y: Any) -> Self:
        assert Path(self.model_path).is_file()
        assert not self.allow_auto_download
        return super().fit(X, y)
