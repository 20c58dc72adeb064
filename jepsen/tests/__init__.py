"""Tests of this package, run by ``make jepsen``."""
