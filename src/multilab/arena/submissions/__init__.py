"""Submissions of methods: the archive, what the method file declares, and what a method changes in the ranks."""
