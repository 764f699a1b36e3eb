"""Benchmarks: every figure in the README and the documentation is printed by one of these."""
