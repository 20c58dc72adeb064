"""Nemeses: each harms a cluster in one way, and undoes the harm."""
