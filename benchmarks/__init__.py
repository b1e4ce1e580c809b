"""Benchmarks against the peers: ``make bench``, or ``python -m benchmarks NAME [--quick]`` for one file."""
