"""Findings of the audit, the list of checks, and the error of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from multilab.core import MultilabError

if TYPE_CHECKING:
    from multilab.audit.printed_table import AuditTable


class AuditError(MultilabError, ValueError):
    """A table that cannot be audited: the message has the file, the line and what to do."""


@dataclass(frozen=True)
class AuditFinding:
    """One observation about a table.

    Attributes
    ----------
    check : str
        Name of the check.
    severity : {"fault", "note"}
        A fault cannot be right as printed (given the sizes that were stated). A note says which convention fits, or
        what is unlikely.
    table, dataset, method, metric : str
        What it is about; empty = all of them.
    printed, right : str
        What the table has, and what would be right.
    why : str
        The arithmetic.
    """

    check: str
    severity: str
    table: str = ""
    dataset: str = ""
    method: str = ""
    metric: str = ""
    printed: str = ""
    right: str = ""
    why: str = ""

    @property
    def where(self) -> str:
        """The cell, row or column in one line."""
        names = [f"table {self.table}" if self.table else "", self.dataset, self.method, self.metric]
        return ", ".join(name for name in names if name) or "all tables"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a mapping for JSON."""
        return asdict(self)


AuditCheck = Callable[["AuditTable"], Iterable[AuditFinding]]
AUDIT_CHECKS: dict[str, AuditCheck] = {}
"""The registered checks by name, in order."""


def audit_check(function: AuditCheck) -> AuditCheck:
    """Register a check: a function of an audit table that yields findings; its name is the name of the check."""
    AUDIT_CHECKS[function.__name__] = function
    return function
