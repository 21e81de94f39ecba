"""Exception of the package ``models``."""

from multilab.core import MultilabError


class DeploymentError(MultilabError):
    """A model that cannot be fitted, saved, loaded or served; the message says which and what to do."""
