"""The API of this project's own, below /v1: answers to the questions of operators, and claims (docs: v1).

    api, handlers, schemas    routes, and what they read and show
    claiming                  claims whose places the service chooses
    policy                    the rules ``placement:v1:...``

The answers come from ``placement/search`` and ``placement/objects``; nothing here decides what fits.
"""
