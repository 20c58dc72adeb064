"""The history: events, their order, and usage samples (docs/adr/0042).

recorder           attaches the history to a database; orders, prunes and samples in the background
notes              changes of a transaction as rows of events
tables             the tables
order              the order of events
event              pages of events
names              names of the objects that events mention
subject            lookup of the object whose history a request names
watch              waiting for events
pruning            removal of old events and samples
sampling           a usage sample every ten minutes
usage_samples      capacity and usage of each resource class
usage_shares       usage by the largest projects and aggregates
"""
