"""The commands.

serve       placement-serve: the service in one process
manage      placement-manage: the schema and the data of the database
baremetal   placement-manage baremetal: the import of nodes
load        placement-manage load: providers from a file
ironic      the Ironic that nodes are imported from
status      placement-status: checks of data and configuration
metrics     placement-metrics: the export of metrics to Prometheus
program     what they share: configuration, database, exit codes
text_table  tables in text
progress    progress on stderr
"""
