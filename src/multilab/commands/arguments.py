"""Arguments of the stages: ``name=value``."""

import math
import re

from multilab.experiments.errors import ExperimentError
from multilab.experiments.study import Study, load_study

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def arguments(argv: list[str], *known: str) -> dict[str, str]:
    """Return the ``name=value`` arguments of a command line; unknown names are refused."""
    values = {}
    for word in argv:
        name, equals, value = word.lstrip("-").partition("=")
        if not equals or name not in known:
            expected = f"expected {', '.join(f'{name}=...' for name in known)}" if known else "there are none"
            raise ExperimentError(f"{word!r} is not an argument here; {expected}")
        values[name] = value
    return values


def seconds_of(name: str, text: str) -> float:
    """Return a time such as ``90s``, ``10m`` or ``2h`` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or not 0 < float(match[1]) < math.inf:
        raise ExperimentError(f"{name} must be a time such as 90s, 10m or 2h, not {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def study_of(argv: list[str], *known: str) -> tuple[Study, dict[str, str]]:
    """Return the study named by ``study=`` (default ``quick``) and the other arguments."""
    options = arguments(argv, "study", *known)
    return load_study(options.pop("study", "quick")), options
