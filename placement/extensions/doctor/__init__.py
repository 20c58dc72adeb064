"""Checks of a configuration, a database and its data, and fixes for their findings (docs: doctor).

database       checks of the schema, the sessions, foreign keys and standard rows
server         checks of the database server: cluster, clock, connections
data           checks of consumers, allocations, leases and providers
trees          checks of parents and roots
feed           checks of the change feed, its writers, and the index that follows it
rows           checks for values that no request accepts and for duplicate rows
files          checks of the permissions of configuration files and the metrics directory
checks         the table of all checks; ``placement/checks`` contains the checks that ``placement-status`` also runs
examination    the run of the checks, and its results
command        ``placement-manage doctor``
fixes          the fixes that ``--fix`` applies
repairs        changes to rows that only fixes make
lineage        parents and roots of all providers, and the inconsistent rows
document       an examination as a JSON document
signals        the end of an examination
metrics        the metric with the number of findings
extension      the declaration of the extension
"""
