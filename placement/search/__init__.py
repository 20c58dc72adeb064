"""The search for allocation candidates, in independent steps.

find       the entry point: runs these steps within a budget
query      parses a query string into a ``SearchQuery``
narrow     applies each rule to sets of all providers, and builds a small ``TreeProblem`` of each remaining tree
solver     finds the candidates of one tree, on demand
choose     takes candidates from all trees, by the configured strategy
refusals   records the providers and trees that each rule removed
budget     bounds the operations and the memory of a search

A search reads one snapshot of the index and nothing else.  Candidates are advice: the database decides whether a claim
fits.
"""
