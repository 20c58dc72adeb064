"""The combining phase of a search: for one tree, which provider supplies which demand.

One tree poses a constraint satisfaction problem.  Each demand is a variable, the providers that can supply it by
themselves are its domain, and constraints hold between the demands: capacity, isolation, subtrees, traits.

    problem         the records: demands, requirements, one tree's problem, candidates
    canonical_form  the problem without provider ids, equal for trees of the same kind
    backtracking    the search for solutions: depth first, with forward checking
    constraints     one module for each constraint
    matching        bipartite matching with capacities, with which some constraints look ahead
    work_limit      when to give up on a tree
    combine         the entry: from a problem to its candidates, with the solutions of each form found once

The solver knows no SQL, no versions and no index; a problem written by hand will do.
"""
