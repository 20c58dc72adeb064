"""Choice of places: the candidates that each of many consumers takes.

Consumers are placed one after another in one snapshot, each at the usage after the earlier picks (``v1/overlay``).  A
strategy orders the trees; the solver yields the candidates of a tree.

    picker        the entry point: requests with different queries, rules between consumers, all consumers in one tree
    strategy      the order in which trees are preferred
    sample        random samples of the trees, and the used share of each tree
    tree_queue    the trees in order of preference; with domains, trees of the domain with the fewest picks first
    combination   several candidates that fit together
    place_search  the search for the places of one query
    allowance     the operations that all searches of a claim set share

A pick, like a candidate, is only advice: the database decides whether the claim fits.
"""
