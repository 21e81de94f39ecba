"""Arguments of the stages: ``name=value``."""

from multilab.experiments.errors import ExperimentError
from multilab.experiments.study import Study, load_study


def arguments(argv: list[str], *known: str) -> dict[str, str]:
    """Return the ``name=value`` arguments of a command line; unknown names are refused."""
    values = {}
    for word in argv:
        name, equals, value = word.lstrip("-").partition("=")
        if not equals or name not in known:
            expected = ", ".join(f"{name}=..." for name in known)
            raise ExperimentError(f"{word!r} is not an argument here; expected {expected}")
        values[name] = value
    return values


def study_of(argv: list[str], *known: str) -> tuple[Study, dict[str, str]]:
    """Return the study named by ``study=`` (default ``quick``) and the other arguments."""
    options = arguments(argv, "study", *known)
    return load_study(options.pop("study", "quick")), options
