"""Narrowing: from a query and a snapshot to the combination problem of each tree that could serve the query.

narrowing      each rule about one provider, or one tree, as a set operation over all providers
tree_problems  the problem of each remaining tree, made when it is asked for
"""
