"""Checks of configuration, database and data, for ``placement-status`` and the doctor.

examination      what is examined, and the result of each check
finding          what a check finds
configuration    the files that this process has read, and what they name
over_commitment  usage above capacity
"""
