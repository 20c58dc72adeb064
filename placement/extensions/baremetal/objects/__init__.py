"""Nodes and allocation records.

placing        a request for a node: choice, claim and record
holding        consumers get and lose nodes
node_update    what clients change of nodes, with the rules for it
locked_node    a node that a transaction has locked, the only way to change one
candidates     the nodes that fit a request, from the index
record         allocation records as they are read and changed
node           nodes as they are read
record_page, node_page, keyset
               lists of them, page by page
states         provision states, and what is allowed in each
"""
