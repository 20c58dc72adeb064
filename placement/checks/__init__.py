"""The type of checks, and the checks that ``placement-status`` and the doctor share.

check            the type of a check, and its subject
finding          the result of a check
configuration    checks of options, policy and the service's own user
over_commitment  the check for usage above capacity
"""
