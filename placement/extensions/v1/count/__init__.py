"""The number of times that a request fits, placed for one new consumer after another (docs: v1-capacity).

    count            the entry point, and the result
    total_counter    the count of all trees together, by root and by aggregate
    sharing          trees that contend for sharing providers, and a bound for all of them together
    inputs           the query, free capacity as arrays, and the budget
    upper_bounds     upper bounds for all trees at once, by arithmetic; exact for separable demands
    shapes           trees that differ only in free capacity
    shape_counter    the counts of trees of one shape, whose demands depend on each other
    alternatives     the alternatives of a placement in a tree, and its independent parts
    greedy           a greedy count and an upper bound, for many trees at once
    dynamic_program  the exact count if these differ: dynamic programming over the providers
    placer           solver candidates placed one by one, if trees contend or have too many alternatives

A count reads a snapshot and changes nothing.
"""
