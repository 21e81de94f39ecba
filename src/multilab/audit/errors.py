"""Error of the package."""

from multilab.core import MultilabError


class AuditError(MultilabError, ValueError):
    """A table that cannot be audited: the message has the file, the line and what to do."""
