"""Explanations of searches: the reasons why a request does not fit, and the changes that would be enough.

    explain            the entry point: runs the steps below for one query
    explanation        the result: frozen values, independent of HTTP
    recorded_search    a search that records the providers that each rule removed
    equivalent_trees   classes of trees, each with one search for all its members
    conditions         the parts of a query that can be dropped or changed, and the query after such changes
    steps              the effect of each narrowing rule, and of each rule about combinations
    class_inventories  the amounts that inventories have room for, and the properties that block an amount
    variations         changed queries with the outcomes of their searches
    amount_search      the amounts of a class with which a query has candidates
    combined_changes   changes of two or three conditions together
    relaxations        the smallest changes of the query that produce candidates
    near_misses        the trees that have candidates after such a change, with the conditions that each does not meet
    mistakes           parts of the query that cannot be met at any usage
    sentence           the explanation in two sentences

An explanation reads one snapshot, and uses the narrowing and the solver of ``placement/search``.
"""
