"""Faults planted in the service by an environment variable, to show that each invariant can fail.

    PLACEMENT_PLANTED=usage-not-in-the-feed python -m jepsen run --cluster sqlite --workload bank --seconds 10

``faults`` is the registry, the other modules contain the faults, and ``runs`` lists the run that finds each fault.
"""
