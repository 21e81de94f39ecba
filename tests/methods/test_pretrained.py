"""Binary relevance over a pretrained network: the file is required, and nothing is downloaded."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import pickle
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from helpers.checkpoints import FileClassifier
from helpers.multilabel_checks import make_data
from multilab.methods import BinaryRelevance, PretrainedBinaryRelevance
from multilab.methods.base import MethodError


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "weights.ckpt"
    path.write_bytes(b"weights")
    return path


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Refuse every connection of the test, and return those that were tried."""
    tried: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> None:
        tried.append(arguments)
        raise OSError("no network in this test")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    return tried


def test_it_is_binary_relevance(checkpoint: Path) -> None:
    X, Y, X_test = make_data()
    Y[:, 1] = 1
    model = PretrainedBinaryRelevance(FileClassifier(C=0.5), checkpoint).fit(X, Y)
    expected = BinaryRelevance(LogisticRegression(C=0.5)).fit(X, Y).predict_proba(X_test)
    np.testing.assert_array_equal(model.predict_proba(X_test), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X_test), expected)
    assert model.checkpoint_sha256_ == hashlib.sha256(b"weights").hexdigest()


def test_the_estimator_given_stays_as_it_is(checkpoint: Path) -> None:
    X, Y, X_test = make_data()
    estimator = FileClassifier()
    PretrainedBinaryRelevance(estimator, checkpoint).fit(X, Y).predict(X_test)
    assert estimator.get_params() == FileClassifier().get_params()


def test_a_missing_checkpoint_is_refused_in_one_line(checkpoint: Path, attempts: list[Any]) -> None:
    X, Y, X_test = make_data()
    missing = {None: "model_path is not set", checkpoint.parent / "other.ckpt": "is not a file", ".": "is not a file"}
    for path, message in missing.items():
        with pytest.raises(MethodError, match=f"{message}.*FileClassifier.*nothing is ever downloaded") as refusal:
            PretrainedBinaryRelevance(FileClassifier(), path).fit(X, Y)
        assert "\n" not in str(refusal.value)
    model = PretrainedBinaryRelevance(FileClassifier(), checkpoint).fit(X, Y)
    checkpoint.unlink()
    with pytest.raises(MethodError, match="is not a file"):
        model.predict(X_test)
    assert attempts == []


def test_another_checkpoint_is_refused(checkpoint: Path) -> None:
    X, Y, X_test = make_data()
    digest = hashlib.sha256(b"weights").hexdigest()
    model = PretrainedBinaryRelevance(FileClassifier(), checkpoint, digest.upper()).fit(X, Y)
    with pytest.raises(MethodError, match=f"has SHA-256 {digest}, and 00 is expected"):
        PretrainedBinaryRelevance(FileClassifier(), checkpoint, "00").fit(X, Y)
    checkpoint.write_bytes(b"other weights")
    with pytest.raises(MethodError, match=f"{digest} is expected"):
        model.predict(X_test)


def test_an_estimator_without_a_checkpoint_is_refused() -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="LogisticRegression has no argument model_path"):
        PretrainedBinaryRelevance(LogisticRegression()).fit(X, Y)
    with pytest.raises(MethodError, match="give estimator"):
        PretrainedBinaryRelevance().fit(X, Y)


def _random_weights(torch: Any, network: Any) -> dict[str, Any]:
    """Return weights that let an output depend on the input: several layers start with zeros."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: value + 0.2 * torch.randn(value.shape, generator=generator) if value.is_floating_point() else value
        for name, value in network.state_dict().items()
    }


def _tabicl(path: Path) -> Any:
    """Save a tiny network in the form of TabICL's checkpoints, and return its classifier."""
    torch, library = pytest.importorskip("torch"), pytest.importorskip("tabicl")
    blocks = {f"{part}_num_blocks": 1 for part in ("col", "row", "icl")}
    heads = {f"{part}_nhead": 1 for part in ("col", "row", "icl")}
    config = {"max_classes": 2, "embed_dim": 8, "col_num_inds": 4, "row_num_cls": 2, **blocks, **heads}
    network = importlib.import_module("tabicl._model.tabicl").TabICL(**config)
    torch.save({"config": config, "state_dict": _random_weights(torch, network)}, path)
    return library.TabICLClassifier(n_estimators=2, device=torch.device("cpu"), n_jobs=1, random_state=0)


def _tabpfn(path: Path) -> Any:
    """Save a tiny network in the form of the checkpoints of TabPFN v2, and return its classifier."""
    torch, library = pytest.importorskip("torch"), pytest.importorskip("tabpfn")
    architecture = importlib.import_module("tabpfn.architectures.tabpfn_v2")
    config = architecture.TabPFNV2Config(max_num_classes=2, emsize=16, nlayers=1, nhead=1)
    network = architecture.get_architecture(config)
    torch.save({"config": dataclasses.asdict(config), "state_dict": _random_weights(torch, network)}, path)
    return library.TabPFNClassifier(n_estimators=2, device=torch.device("cpu"), random_state=0)


NETWORKS = {"tabicl": _tabicl, "tabpfn": _tabpfn}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_tiny_checkpoint_is_read_without_a_connection(name: str, tmp_path: Path, attempts: list[Any]) -> None:
    X, Y, X_test = make_data()
    path = tmp_path / f"{name}.ckpt"
    network = NETWORKS[name](path)
    model = PretrainedBinaryRelevance(network, path).fit(X, Y)
    scores = model.predict_proba(X_test)
    direct = [network.set_params(model_path=str(path)).fit(X, y).predict_proba(X_test)[:, 1] for y in Y.T]
    np.testing.assert_allclose(scores, np.column_stack(direct), atol=1e-6)
    assert np.ptp(scores, axis=0).min() > 1e-4
    assert np.ptp(scores, axis=1).max() > 1e-4
    assert attempts == []
    path.unlink()
    with pytest.raises(MethodError, match="nothing is ever downloaded"):
        model.predict_proba(X_test)
    assert attempts == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_entrant_requires_a_checkpoint_and_has_the_versions_in_its_key(name: str, attempts: list[Any]) -> None:
    for package in ("torch", name, "hydra"):
        pytest.importorskip(package)
    X, Y, _ = make_data()
    method = importlib.import_module("multilab.cells.method").load_method(name)
    assert set(method.outside.distributions) == {name, "torch"}
    model = importlib.import_module("multilab.cells.fitting").build(method)
    with pytest.raises(MethodError, match="model_path is not set"):
        model.fit(X, Y)
    assert attempts == []
