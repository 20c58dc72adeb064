"""Compares two services of the Bare Metal API; ../baremetal_diff.py is the command.

calls     random calls, and what a run has made so far
servers   a service: sends calls and waits until their work in the background has ended
replies   replies without what differs by nature, and the comparison of two of them
known     the differences on purpose, each with its entry in docs/divergences.rst
runs      a run of calls on both services; the shortest run with the same difference
"""
