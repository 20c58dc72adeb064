"""The Bare Metal API: nodes, and allocations of them (docs: baremetal).

A node is a resource provider with one unit of its class; the consumer that holds the unit is its instance.  A machine
allocated by one API is therefore taken in the other.  The package keeps records and controls no hardware.

api               the route table, and the ``Api`` value mounted at /baremetal
handlers          the endpoints
schemas           schemas of documents and queries
endpoint          defaults of all endpoints
access            the nodes and allocations that a caller may see and change
policy            the policy rules, named as in Ironic
versioning        negotiation of the version
error_documents   error documents
spellings         normalization of paths
importing         import of nodes from an Ironic service
objects           nodes, allocation records, and the transactions that change them
command           ``placement-manage baremetal``
ironic            a client of an Ironic service
tables            the tables
schema            the tables as an addition to the database schema, and their upkeep
signals, metrics  instrumentation events, and the metrics that count them
extension         the declaration of the extension
versions          the versions of the API
failures          the failures of the API
"""
