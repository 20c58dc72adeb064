"""The revisions of the schema (docs: database-schema).

Up to ``a082b8bb98d0`` they are the revisions of every Placement database, and create the same tables.  Later ones
exist only here, and only add tables.  So a database can be taken over from another implementation, and returned to it
("placement-manage db release").
"""
