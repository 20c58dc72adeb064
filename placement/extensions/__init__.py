"""Extensions of the Placement API, one package each (docs: architecture-extensions).

v1         the v1 API: claims that the service places, explanations, counts, the history
baremetal  the Bare Metal API: machines and their allocations
console    web pages
doctor     checks of a service and its database, and fixes
orphans    consumers unknown to nova and Ironic
terminal   ``placement-ask`` and commands of ``openstack``
loading    providers from files, and the demonstration
"""
