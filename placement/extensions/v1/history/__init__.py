"""The recorded past: events, their order, and samples of usage (docs/adr/0042).

recorder           records the transactions of a database, and keeps the history in order and within bounds
notes              the notes of a transaction as rows of events
tables             the tables
order              the order of events
event              events with who caused them, page by page
names              the names of the objects that events mention
subject            what the history is asked about
watch              waiting for events
pruning            the removal of old events and samples
sampling           the usage, every ten minutes
usage_samples      how much of each class is used
usage_shares       how much of it the largest projects and aggregates use
"""
