"""Overviews of all providers, at present and in the past.

trees          trees of providers, filtered and sorted
usage_history  usage over time
past           past states: the present state with events undone
"""
