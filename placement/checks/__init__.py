"""Checks of configuration, database and data, for ``placement-status`` and the doctor.

check            a check, and what it is given
finding          what a check finds
configuration    the files that this process has read, and what they name
over_commitment  usage above capacity
"""
