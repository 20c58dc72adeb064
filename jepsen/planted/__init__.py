"""Faults of the service, planted by an environment variable, which show that each invariant can fail.

    PLACEMENT_PLANTED=usage-not-in-the-feed python -m jepsen run --cluster sqlite --workload bank --seconds 10

``faults`` is the register; the modules beside it have the faults; ``runs`` says which run finds each of them.
"""
