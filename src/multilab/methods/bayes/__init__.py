"""Naive Bayes for many labels, and the genetic search for its features."""
