"""How many times a request fits, placed for one new consumer after another, in the cloud as it is (docs: v1-capacity).

    count      the entry, and the result
    counting   all trees, by root and by aggregate
    sharing    which trees contend for sharing providers, and a bound for all of these
    basis      what every step reads: the query, free amounts as arrays, the budget
    closed     the count of a tree by arithmetic, and bounds, for all trees at once
    shapes     groups of trees that differ only in what is free
    trees      the counts of trees of one shape, where demands depend on each other
    blocks     the alternatives of a placement in a tree, and its independent parts
    dealing    a greedy count, and a bound from above, for many trees at once
    dynamic    the exact count if these differ: dynamic programming over the providers
    placing    placing candidates of the solver one by one: where trees contend, or have too many alternatives

A count reads a snapshot and changes nothing.
"""
