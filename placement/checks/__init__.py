"""Checks: what any of them is, and those of ``placement-status``, which the doctor makes, too.

check            a check, and what it is given
finding          what a check finds
configuration    the options, the policy, and the service's own user
over_commitment  usage above capacity
"""
