"""The commands.

serve       placement-serve: the service in one process
api         placement-api: the service with an existing configuration, in one process
manage      placement-manage: schema and data of the database, and expired leases
status      placement-status: checks of data and configuration
metrics     placement-metrics: the export of metrics to Prometheus
program     code shared by the commands: configuration, database, exit codes
text_table  text and tables for terminals
progress    progress on stderr
"""
