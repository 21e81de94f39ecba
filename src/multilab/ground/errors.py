"""The root of all errors that multilab raises on purpose."""


class MultilabError(Exception):
    """Something a user can mend: the message says what is wrong, where, and what to do.

    The command line prints it as one line, ``<ClassName>: <message>``, and exits with code 2. Every room has one
    subclass.
    """
