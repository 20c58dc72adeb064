"""Schemas of documents and queries, and the presentation of objects."""
