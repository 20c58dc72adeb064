"""How many times a request could be placed, one after another, as the cloud is now (docs: v1-capacity).

    count      the entry, and the result
    counting   all trees, by root and by aggregate
    sharing    what trees have together that use the same sharing providers
    supply     what is free, as arrays
    closed     the count of a tree by arithmetic, for all trees at once
    shapes     trees that are equal in all that the query asks, but for what is free
    trees      the counts of trees of one shape, where demands depend on each other
    blocks     the alternatives of a placement in a tree, and the parts that do not depend on each other
    dealing    a greedy count in several orders, and a bound from above, for many trees at once
    dynamic    the exact count where these differ: dynamic programming over the providers
    placing    placing candidates of the solver one by one: where trees share providers, or alternatives are too many

A count reads a snapshot and changes nothing.
"""
