"""How the schema came to be, step by step (contract section 6).

Up to ``a082b8bb98d0`` the revisions are those of every Placement database, and build the same tables.  Later ones are
ours, and only add tables of our own: so a database can be taken over from another implementation, and given back by
stamping that revision.
"""
