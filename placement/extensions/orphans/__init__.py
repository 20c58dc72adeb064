"""Consumers against those that should exist: what nobody knows any more, and what differs from nova (docs: orphans).

``expected`` says who should hold what, ``consumers`` reads who holds what, ``comparison`` finds what differs, and
``releasing`` gives orphans back.
"""
