"""Comparison of consumers with nova, Ironic and lists, and release of orphans (docs: orphans).

command     ``placement-manage consumers``
expected    consumers that should hold resources
nova        servers and migrations, read from a running nova
flavors     amounts that a server should hold according to its flavor
consumers   consumers that hold resources, with their ages
hosts       trees on which consumers hold resources
comparison  discrepancies between both sets of consumers
releasing   the release of orphans
reports     output as text, JSON or CSV
extension   the declaration of the extension
"""
