"""A checker of histories: clients record every call, nemeses break things beside them, and a checker judges the result.

README.rst says how it is used and extended; docs/reliability.rst (section "Histories") what is checked and what was
found.  ``history`` is what all others read and write, ``client`` records it, ``clusters`` are what runs, ``workloads``
what clients do, ``nemeses`` what is broken, ``checker`` the invariants, ``planted`` the faults that show that each
invariant can fail.
"""
