"""Where would this fit?  From a request to a list of candidates, in steps that know nothing of each other.

    parse     the query string of one version becomes a ``request.SearchQuery``
    narrow    every rule is one mask over all providers; what is left is, per tree, a small ``combine.Problem``
    combine   the combinations of one problem, lazily, pruned while they are built
    choose    so many of them, in the order the operator wants
    present   the shape that the version shows

The search reads the index and nothing else.  What it finds is advice: a claim decides from the database.
"""
