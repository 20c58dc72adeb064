"""How many times a request could be placed, one after another, as the cloud is now (docs: v1-capacity).

    count      the entry, and the result
    counting   all trees, by root and by aggregate
    sharing    what trees have together that use the same sharing providers
    supply     what is free, as arrays
    closed     the count of a tree by arithmetic, for all trees at once
    shapes     trees that are equal in all that the query asks, but for what is free
    programs   the counts of trees of one shape, where demands depend on each other
    packing    how many times patterns fit: an integer program for many trees at once
    simplex    its linear relaxation
    branching  its search for whole numbers
    placing    placing candidates of the solver one by one: where patterns are too many, or trees share providers

A count reads a snapshot and changes nothing.
"""
