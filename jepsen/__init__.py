"""A checker of histories: clients record every call, nemeses break things beside them, and a checker judges the result.

    python -m jepsen run --cluster mariadb --workload bank --nemesis "kill a worker" --seconds 60
    python -m jepsen replay FILE

The idea is that of Jepsen, for databases; docs/reliability.rst (section "Histories") says what is checked and what was
found.  ``history`` is what all others read and write, ``client`` records it, ``clusters`` are what runs, ``workloads``
what clients do, ``nemeses`` what is broken, ``checker`` the invariants, ``planted`` the faults that show that each
invariant can fail.
"""
