"""Commands of ``openstack``, beside those of osc-placement, for the API below /v1 (docs: ask).

The module is imported by that client only; it needs the extra ``osc``.
"""
