"""The doctor: what is wrong with a configuration, a database and its data, and what mends it (docs: doctor).

finding        what a check has found
examination    which checks are run, in how much time, and what became of each
configuration  checks of options, policy, Identity service, metrics, secrets
database       checks of the schema and of the sessions
server         checks of the server: cluster, clock, connections
data           checks of consumers, allocations and providers
trees          checks of parents and roots
feed           checks of the writers of the feed
leases         checks of claims with an end
index          the comparison of a worker's index with the database
checks         the table of all checks
mending        what ``--fix`` does about findings
document       findings as a JSON document
"""
