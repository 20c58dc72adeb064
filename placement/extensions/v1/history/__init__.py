"""The recorded past: events, their order, and samples of the usage (docs/adr/0042).

recorder           what records the transactions of a database, and keeps the history in order and bounds
notes              notes of a transaction as rows of events
tables             the tables
order              the order of events
event              events with who caused them, page by page
subject            what the history is asked about
watch              waiting for events
pruning            the removal of old ones
usage_samples      what is used of each class, every ten minutes
"""
