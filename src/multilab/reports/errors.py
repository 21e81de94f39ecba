"""What can be wrong with the files a report is made of."""

from multilab.core.errors import MultilabError


class ReportError(MultilabError, ValueError):
    """A file of a study that is missing, unreadable, or contradicts another; the message names the file."""
