"""The doctor: what is wrong with a configuration, a database and its data, and what mends it (docs: doctor).

database       checks of the schema and of the sessions
server         checks of the server: cluster, clock, connections
data           checks of consumers, allocations, claims with an end, and providers
trees          checks of parents and roots
feed           checks of the writers of the feed, and of the index that follows it
rows           checks of rows that other programs may have written
files          checks of who may read and change files of the configuration, and the directory of metrics
checks         the table of all checks; those that placement-status makes, too, are in placement/checks
examination    runs checks, and has the result of each
command        ``placement-manage doctor``
mending        what ``--fix`` does about findings
repairs        the changes that only fixes make
lineage        parents and roots of all providers, and where rows contradict them
document       findings as a JSON document
"""
