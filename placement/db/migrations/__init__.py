"""The revisions of the schema (docs: database-schema).

Up to ``a082b8bb98d0`` they are those of every Placement database, and create the same tables.  Later ones are only
ours, and add tables of our own: so a database can be taken over from another implementation and given back to it
("placement-manage db release").
"""
