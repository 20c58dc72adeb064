"""Nodes and allocation records.

placing        requests for nodes: choice, claim and record
holding        allocation and release of nodes
node_update    changes of nodes requested by clients, and their rules
locked_node    a node locked by a transaction, the only way to change one
candidates     nodes that fit a request, from the index
record         allocation records
node           nodes as read from the database
record_page, node_page, keyset
               lists, page by page
states         provision states, and the actions allowed in each
"""
