"""Base class of the errors that multilab raises on purpose."""


class MultilabError(Exception):
    """Error that a user can fix: the message states what is wrong, where, and what to do.

    The command line prints it as one line, ``<ClassName>: <message>``, and exits with ``exit_code``. Every package has
    one subclass.
    """

    exit_code = 2
