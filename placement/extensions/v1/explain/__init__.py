"""Why does a request not fit, and what would be enough?

    explanation   the answer: frozen values that know no HTTP
    explaining    the entry: runs the steps below for one query
    searching     a search with its own record of what each rule removed
    equal_trees   trees for which one search is enough
    conditions    the parts of a query that can be left out or lowered, and the query without them
    steps         what each rule of narrowing removed, and what combinations ruled out
    units         which amounts inventories have room for, and what stands in the way of one
    relaxations   the smallest changes of the query that give candidates
    near_misses   the trees that these make candidates, and what each lacks
    mistakes      what is wrong with the query in any state of the cloud
    sentence      the explanation in two sentences

It runs the search of ``placement/search`` on one snapshot, for the query and for variations of it.  The search itself
records no more for it than it always does.
"""
