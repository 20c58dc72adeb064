"""The read model of the search: all providers in memory, as columns.

    records       the rows that an index is built from
    inconsistent  rows that make no sense, which are left out and logged
    slots         sets of providers
    column        the inventories of one resource class, of all providers
    forest        the trees of providers
    snapshot      all of it as of one committed state; immutable
    build, edit   a snapshot from rows, and the next one, which shares what did not change
    load          the rows of a database
    position      how far a reader has followed the feed
    refresh       a snapshot brought up to date with its database
    live          the current snapshot of a process
    consumer_counts how many consumers hold something on each provider

A provider is known by its *slot*, an index into every array.  A snapshot is immutable: threads search one without locks
while another is being built, and a search that takes long still sees one state.

Nothing is decided from a snapshot: candidates are advice, and a claim reads the database.
"""
