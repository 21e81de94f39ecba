"""Kernel extreme learning machines."""
