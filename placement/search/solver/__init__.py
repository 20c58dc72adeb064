"""The combining phase of a search: assigning a provider of one tree to each demand.

Each tree poses a constraint satisfaction problem.  Its variables are the demands.  The domain of a variable consists of
the providers that can supply the demand by themselves.  The constraints between demands are capacity, isolation,
subtrees and traits.

problem          the records: demands, requirements, the problem of a tree, candidates
canonical_form   the problem without provider ids, equal for equivalent trees
backtracking     the search for solutions: depth first, with forward checking
constraints      one module per constraint
matching         bipartite matching with capacities, by which some constraints look ahead
work_limit       the bound on the work for one tree
combine          the entry point: from a problem to its candidates; each canonical form is solved once

The solver does not depend on SQL, versions or the index; problems can be written by hand.
"""
