"""Checks, and those shared by ``placement-status`` and the doctor.

check            the type of a check, and its subject
finding          the result of a check
configuration    checks of options, policy and the service's own user
over_commitment  the check for usage above capacity
"""
