"""The search for allocation candidates, in steps that do not depend on each other.

query      parses a query string into a ``SearchQuery``
narrow     applies each rule to sets of all providers, and makes a small ``TreeProblem`` of each remaining tree
solver     finds the candidates of one tree, on demand
choose     takes candidates from all trees, by the configured strategy
find       the entry point: runs these steps within a budget
refusals   records what each rule removed, and so why there is no candidate
budget     bounds the operations and the memory of a search

A search reads one snapshot of the index and nothing else.  Candidates are advice: claims are judged in the database.
"""
