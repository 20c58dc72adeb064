"""Choice of places: the candidate that each of many consumers takes.

Consumers are placed one after the other in one snapshot, and each sees the usage of the consumers before it.  A
strategy orders the trees; the solver yields the candidates of a tree.

    strategy      which trees are preferred
    sample        the trees considered, and the used share of each for the classes of a query
    tree_queue    the trees in order of preference: of all trees, or of the domains in turn
    overlay       the amounts that earlier picks took, and the problem of a tree without them
    combination   several candidates that fit together
    place_search  the search for the places of one query
    allowance     the operations that all searches of a request share
    picker        the entry point: requests with different queries, rules between consumers, all consumers in one tree

A pick, like a candidate, is only advice: the claim decides in the database.
"""
