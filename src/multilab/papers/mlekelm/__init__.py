"""ML-EKELM: elastic-net kernel extreme learning machine."""
