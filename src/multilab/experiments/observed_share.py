"""Setting `observed`: the share of the training labels that methods see, and what they see of the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from multilab.core.messages import unknown_name
from multilab.experiments.conf import check_setting_names
from multilab.experiments.errors import ExperimentError

__all__ = ["ObservedShare"]

_HIDDEN = ("missing", "absent")


@dataclass(frozen=True)
class ObservedShare:
    """Partially observed training labels.

    Attributes
    ----------
    share : float
        Expected share of the training labels that stay observed, in (0, 1).
    hidden : {"missing", "absent"}
        What methods see of a hidden label: ``missing`` (-1, "not observed"), for methods that learn from partially
        observed labels; ``absent`` (0), what one gets where labels that nobody recorded count as absent.
    """

    share: float
    hidden: str = "missing"

    @classmethod
    def from_setting(cls, value: Any, location: str = "observed") -> ObservedShare | None:
        """Build it from a share, or from a block ``{share, hidden}``; return None if all labels are observed.

        Raises
        ------
        ExperimentError
        """
        block = value if isinstance(value, dict) else {"share": 1.0 if value is None else value}
        check_setting_names(location, "share of observed labels", block, ("share", "hidden"))
        share, hidden = block.get("share"), block.get("hidden", "missing")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ExperimentError(f"{location}: the share of observed labels must be in (0, 1], got {share!r}")
        if hidden not in _HIDDEN:
            raise ExperimentError(f"{location}: {unknown_name('treatment of hidden labels', str(hidden), _HIDDEN)}")
        return None if share == 1 else cls(float(share), str(hidden))

    def to_dict(self) -> dict[str, Any]:
        """Return the block as it is written in settings and in the key of a cell."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the setting as it is written on the command line."""
        return f"{self.share:g}" if self.hidden == "missing" else f"{{share:{self.share:g},hidden:{self.hidden}}}"
