"""Extensions: what is not the Placement API, a room each (docs: architecture-extensions).

v1         the API below /v1: claims for which the service chooses places, explanations, counts, the history
baremetal  the Bare Metal API: machines, and allocations of them
console    pages for people
doctor     what is wrong with a service and its database, and what mends it
orphans    consumers that nova and Ironic do not know
terminal   placement-ask, and commands of ``openstack``
loading    providers from files, and the demonstration
"""
