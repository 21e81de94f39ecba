"""Engines, which run cells on this machine or on Dask workers; ``conf/engine/NAME.yaml`` has the settings.

The engine of a command holds for everything that it runs: :func:`using` sets it, the executor asks :func:`current`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from multilab.cells.conf import check_setting_names, plain, read_settings
from multilab.cells.errors import ExperimentError

__all__ = ["LOCAL", "Engine", "composed_engine", "current", "engine_from", "load_engine", "using"]

_KINDS = ("local", "dask")
_SCHEMES = ("tls", "tcp")
_TLS = ("ca", "cert", "key")


@dataclass(frozen=True, eq=False)
class Engine:
    """Engine that runs cells.

    Attributes
    ----------
    kind : {"local", "dask"}
    address : str or None
        Of the scheduler, ``tls://host:8786``.
    scheduler_file : str or None
        File with the address, as the scheduler writes it.
    tls : dict
        Files ``ca``, ``cert`` and ``key``; what is missing Dask's own configuration says.
    store : str or None
        The store of cells as workers see it, ``None`` if they share no disk and cells travel.
    patience : float
        Seconds to wait for a scheduler that does not answer.
    failed : dict of str to str
        Reasons of the cells that failed in this command, by key: they are not tried again.
    """

    kind: str = "local"
    address: str | None = None
    scheduler_file: str | None = None
    tls: dict[str, str] = field(default_factory=dict)
    store: str | None = None
    patience: float = 30.0
    failed: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def is_local(self) -> bool:
        """Whether cells run on this machine."""
        return self.kind == "local"

    @property
    def where(self) -> str:
        """Name of the scheduler in messages."""
        return self.address or str(self.scheduler_file)

    @property
    def is_open(self) -> bool:
        """Whether the scheduler is reached over a network without TLS."""
        parts = urlsplit(self.address or "")
        return parts.scheme == "tcp" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


LOCAL = Engine()
_CURRENT: contextvars.ContextVar[Engine] = contextvars.ContextVar("engine", default=LOCAL)


def current() -> Engine:
    """Return the engine of the running command."""
    return _CURRENT.get()


@contextlib.contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Run cells of this block on an engine."""
    token = _CURRENT.set(engine)
    try:
        yield engine
    finally:
        _CURRENT.reset(token)


def load_engine(name: str, address: str | None = None) -> Engine:
    """Return the engine of ``conf/engine/<name>.yaml``, with another address if one is given.

    >>> load_engine("local").is_local
    True
    >>> load_engine("dask", "tls://10.0.0.1:8786").address
    'tls://10.0.0.1:8786'
    """
    return engine_from(f"conf/engine/{name}.yaml", read_settings("engine", name), address)


def composed_engine(cfg: Any) -> Engine:
    """Return the engine of composed settings; the same object for equal ones, so that it remembers what failed."""
    return _composed(json.dumps(plain(cfg.engine), sort_keys=True, default=str))


@functools.cache
def _composed(text: str) -> Engine:
    return engine_from("engine", json.loads(text))


def engine_from(location: str, settings: Any, address: str | None = None) -> Engine:
    """Return the engine of a mapping of settings.

    Raises
    ------
    ExperimentError
        If they are not those of an engine, or do not say where its scheduler is.
    """
    names = ("kind", "address", "scheduler_file", "tls", "store", "patience")
    check_setting_names(location, "engine", settings, names)
    # A setting that is null in the YAML has its default.
    options = {name: value for name, value in settings.items() if value is not None}
    kind = options.get("kind", "local")
    if kind not in _KINDS:
        raise ExperimentError(f"{location}: kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    tls = options.pop("tls", {})
    check_setting_names(f"{location}: tls", "certificate", tls, _TLS)
    patience = options.get("patience", 30.0)
    if isinstance(patience, bool) or not isinstance(patience, int | float) or patience <= 0:
        raise ExperimentError(f"{location}: patience must be a number of seconds, not {patience!r}")
    engine = Engine(**{**options, "tls": {name: str(path) for name, path in tls.items() if path is not None}})
    engine = replace(engine, address=address, scheduler_file=None) if address else engine
    if engine.is_local:
        if engine.address:
            raise ExperimentError("the engine local has no address; add --engine dask")
        return engine
    if not (engine.address or engine.scheduler_file):
        raise ExperimentError(
            f"{location}: where is the scheduler? --engine-address tls://HOST:8786, or MULTILAB_ENGINE_ADDRESS"
        )
    if engine.address and urlsplit(str(engine.address)).scheme not in _SCHEMES:
        raise ExperimentError(f"the address of a scheduler is tls://HOST:PORT, not {engine.address!r}")
    return engine
