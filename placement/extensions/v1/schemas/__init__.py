"""Queries and documents of the API below /v1."""
