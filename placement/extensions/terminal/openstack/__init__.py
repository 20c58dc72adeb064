"""Commands of ``openstack`` for the v1 API, in addition to the commands of osc-placement (docs: ask).

Only python-openstackclient imports this package, which requires the extra ``osc``.
"""
