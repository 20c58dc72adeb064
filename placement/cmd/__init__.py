"""The commands.

serve       placement-serve: the service in one process
manage      placement-manage: the schema and the data of the database, and leases that are over
status      placement-status: checks of data and configuration
metrics     placement-metrics: the export of metrics to Prometheus
program     what they share: configuration, database, exit codes
text_table  texts and tables in a terminal
progress    progress on stderr
"""
