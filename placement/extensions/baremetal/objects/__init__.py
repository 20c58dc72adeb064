"""Nodes and allocation records.

placing      requests for nodes: choice, claim and record
holding      allocation and release of nodes
node_update  changes of nodes requested by clients, and their rules
locked_node  a node locked by a transaction, the only way to change a node
candidates   nodes that fit a request, from the index
record       allocation records
node         nodes as read from the database
record_page  the list of allocation records, page by page
node_page    the list of nodes, page by page
keyset       the pagination of both lists
states       provision states, and the actions allowed in each
"""
