"""What all providers have, or had, and what is used of it, now and over time.

trees  trees of providers, in order
usage  the usage over time
past   all providers as they were: events that have to be undone, and what is left
"""
