"""Where do these demands fit?  From a query to allocation candidates, in steps that do not know each other.

    query     parses a query string once into a ``SearchQuery``
    narrow    applies each rule to sets of all providers; what remains of a tree becomes a small ``TreeProblem``
    solver    finds the candidates of one tree, on demand
    choose    takes a number of candidates from all trees, in the order that the operator wants
    find      the entry: runs these steps within a budget
    refusals  what each rule of both phases removed: why there are no candidates
    budget    the bounds of a search

A search reads one snapshot of the index and nothing else.  Candidates are advice: a claim decides from the database.
"""
