"""How many times a request could be placed, one after another, as the cloud is now (docs: v1-capacity).

    count      the entry, and the result
    counting   all trees, by root and by aggregate
    sharing    what trees have together that use the same sharing providers
    supply     what is free, as arrays
    closed     the count of a tree by arithmetic, for all trees at once
    placing    the count of a tree by placing candidates of the solver, where arithmetic is only a bound

A count reads a snapshot and changes nothing.
"""
