"""The read model of the search: all providers in memory, as columns.

    records          rows of some providers
    tables           the rows of all providers, as arrays
    texts            arrays of texts
    pages, load      the rows of a database
    inconsistent     inconsistent rows, which are corrected or left out, and logged
    arrays           named arrays: the form in which an index is built and stored
    packed_uuids     uuids as numbers
    key_index        slots by number or hash
    member_sets      the distinct sets of traits, aggregates and classes that providers have
    slots            sets of providers
    slot_sets        the sets of the providers with each trait and in each aggregate
    patched          arrays that share most elements
    providers        the providers
    column           the inventories of all providers in one resource class
    forest           the trees of providers
    snapshot         all providers in one committed state; immutable
    build, edit      a snapshot from rows, and its successor, which shares the unchanged parts
    contents         the rows of a snapshot
    position         the position of a reader in the change feed
    refresh          a snapshot brought up to date with its database
    array_file       a file of arrays
    store            the file that the workers of a host share
    memory           the memory of the process
    live             the current snapshot of a process
    consumer_counts  the number of consumers on each provider
    comparison       the differences between two snapshots

A provider is identified by its *slot*, an index into every array.  The arrays are built once, for all providers, and
usually mapped from a file; the providers that have changed since are stored beside them (``providers``, ``column``).  A
snapshot is immutable: threads search it without locks while another one is built, and even a long search sees a single
state.

Nothing is decided from a snapshot: candidates are advice, and a claim reads the database.
"""
