"""What all providers have, and what is used of it, now and over time.

trees  trees of providers, in order
usage  the usage over time
"""
