"""Queries and documents of the v1 API."""
