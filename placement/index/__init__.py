"""What the search reads: all providers in memory, as columns.

    records     the plain rows that go in
    slots       sets of providers
    column      one resource class of all providers
    forest      who is whose child
    snapshot    all of it as of one moment; never changes
    edit        the next snapshot, sharing with the last what did not change
    load, feed  the rows of a database, and what has changed in it since

A provider is known by its *slot*, a small number that is an index into every array.  A snapshot is immutable: threads
search one while another is being made, without locks, and a search that is drawn out sees one state of the world.

Nothing is decided from here: candidates are advice, and a claim reads the database.
"""
