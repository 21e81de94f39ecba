"""The programs behind the command line: read settings, call one library function, write the result.

No mathematics, no plotting, and no branching on the name of a method or dataset.
"""
