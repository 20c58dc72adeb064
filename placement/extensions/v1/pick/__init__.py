"""Choosing places: not which candidates there are, but which one each of many consumers takes.

Several consumers are placed one after the other in one snapshot; each sees what those before it took.  The order in
which trees are tried is that of a strategy, and the candidates of a tree are those of the solver.

    strategy    which trees are preferred
    sample      which trees are looked at, and how much of each is used, of the classes that a query asks for
    tree_queue  the trees, the preferred one first: of all, or of the domains in turn
    overlay     the amounts that earlier picks took, and a tree's problem without them
    combination several candidates that fit together
    places      the search for the places of one query
    allowance   the operations that all searches of a call have together
    picker      the entry: requests of different queries, rules between consumers, all consumers in one tree

A pick is advice as a candidate is: the claim decides from the database.
"""
