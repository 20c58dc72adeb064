"""Clusters: services on a database, with parts that nemeses can harm."""
