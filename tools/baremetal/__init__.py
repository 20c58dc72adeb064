"""Comparison of two services of the Bare Metal API; ../baremetal_diff.py is the command.

calls, node_calls  random calls
world              the objects that a run has created, and random values for calls
servers            a client of one service, which waits for background work
replies            normalized replies and their comparison
known              the intentional differences, each with its entry in docs/divergences.rst
runs               runs of calls on both services, and shrinking of failed runs
"""
