"""Submissions of methods: archives, declarations of method files, and changes of the ranks."""
