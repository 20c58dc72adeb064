"""The read model of the search: all providers in memory, as columns.

    records          the rows that an index is built from
    inconsistent     inconsistent rows, which are corrected or left out, and logged
    slots            sets of providers
    column           the inventories of all providers in one resource class
    forest           the trees of providers
    snapshot         all providers in one committed state; immutable
    build, edit      a snapshot from rows, and its successor, which shares the unchanged parts
    load             the rows of a database
    position         the position of a reader in the change feed
    refresh          a snapshot brought up to date with its database
    live             the current snapshot of a process
    consumer_counts  the number of consumers on each provider
    comparison       the differences between two snapshots

A provider is identified by its *slot*, an index into every array.  A snapshot is immutable: threads search it without
locks while another one is built, and even a long search sees a single state.

Nothing is decided from a snapshot: candidates are advice, and a claim reads the database.
"""
