"""The solver: combinations of the providers of one tree."""
