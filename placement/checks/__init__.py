"""What a check is, and the checks that both ``placement-status`` and the doctor make.

check            a check, and what it is given
finding          what a check finds
configuration    the options, the policy, and the service's own user
over_commitment  usage above capacity
"""
