"""The commands.

serve     placement-serve: the service in one process
manage    placement-manage: the schema and the data of the database
status    placement-status: checks of data and configuration
metrics   placement-metrics: the export of metrics to Prometheus
program   what they share: configuration, database, exit codes
frame     tables in text
progress  progress on stderr
"""
