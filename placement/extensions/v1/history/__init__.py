"""The recorded past: events, their order, samples of the usage, and the state of all at a time (docs/adr/0042).

recorder                    what records the transactions of a database, and keeps the history in order and bounds
notes                       notes of a transaction as rows of events
tables, migration           the tables
event_order, event_sort     the order of events
event_watch, event_pruning  waiting for events, and the removal of old ones
usage_samples               what is used of each class, every ten minutes
event                       events with who caused them
past_events, past           events that have to be undone, and the index as it was
"""
