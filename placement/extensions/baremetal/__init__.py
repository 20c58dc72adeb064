"""The Bare Metal API: nodes, and allocations of them (docs: baremetal).

A node is a resource provider with one unit of its class, and the consumer that holds the unit is its instance: so a
machine that one API has given away is taken in the other.  The package keeps records and drives no hardware.

api                 the route table, and the Api value that deploy mounts at /baremetal
handlers            the endpoints
schemas             documents and queries, as clients send them
endpoint            what all endpoints declare
access              which nodes and allocations a caller may see and change
policy              the rules, with Ironic's names
versioning, error_documents, spellings
                    how versions are negotiated, failures are reported, and paths and the id of a request are spelt
importing           nodes of an Ironic service, recorded here by a command
objects             nodes, allocation records, and the transactions that change them
command, ironic     ``placement-manage baremetal``, and the Ironic that nodes are imported from
tables, schema      the tables
extension           what all of it adds to the service
versions, failures  what everything else here refers to
"""
