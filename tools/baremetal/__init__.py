"""Comparison of two services of the Bare Metal API; ../baremetal_diff.py is the command.

requests, node_requests  random requests
world                    the objects that a run has created, and random values for requests
servers                  a client of one service, which waits for background work
replies                  normalized responses and their comparison
known                    the intentional differences, each with its entry in docs/divergences.rst
runs                     runs of requests on both services, and shrinking of failed runs
"""
