"""The Bare Metal API: nodes, and allocations of them (docs: baremetal).

A node is a resource provider with one unit of its class; the consumer that holds the unit is its instance.  A machine
allocated by one API is therefore taken in the other.  The package keeps records and controls no hardware.

api                 the route table, and the ``Api`` value mounted at /baremetal
handlers            the endpoints
schemas             schemas of documents and queries
endpoint            defaults of all endpoints
access              which nodes and allocations a caller may see and change
policy              the policy rules, named as in Ironic
versioning, error_documents, spellings
                    negotiation of versions, error documents, normalization of paths
importing           import of nodes from an Ironic service
objects             nodes, allocation records, and the transactions that change them
command, ironic     ``placement-manage baremetal``, and the client of the Ironic service
tables, schema      the tables
signals, metrics    instrumentation events, and the metrics they feed
extension           options, commands and tables added to the service
versions, failures  versions and failures, used by all of the above
"""
