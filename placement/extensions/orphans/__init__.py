"""Comparison of consumers with nova, Ironic and lists, and release of orphans (docs: orphans).

``expected`` collects the consumers that should exist, ``consumers`` reads the consumers that hold resources,
``comparison`` finds the discrepancies, and ``releasing`` releases orphans.
"""
