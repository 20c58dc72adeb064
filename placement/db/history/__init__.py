"""The history of a database: events in order and within bounds, and samples of the usage (docs/adr/0042).

history                     what keeps it in order
event_order, event_sort     the order of events
event_watch, event_pruning  waiting for events, and the removal of old ones
usage_samples               what is used of each class, every ten minutes
"""
