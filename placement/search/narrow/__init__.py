"""Narrowing: from a query and a snapshot to the problem of each tree that could serve the query.

narrowing       rules about one provider, or one tree, as set operations over all providers
tree_problems   the problem of each remaining tree, built on demand
"""
