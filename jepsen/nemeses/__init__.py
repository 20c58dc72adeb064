"""Nemeses: each does one kind of harm to a cluster, and undoes it."""
