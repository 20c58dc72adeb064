"""Recorded histories of concurrent clients under failures, checked for contradictions.

README.rst describes how to use and extend the package; docs/reliability.rst, section "Histories", lists the checks, the
nemeses and the errors found.
"""
