"""Claims: what consumers hold, how it is given, and how it ends.

claim, claim_set, claim_batch      one claim, those of one request, and many for which the service has chosen places
claimed_inventory, room            the inventories that claims take from, and what is left of them
joint_claims                       claims of several threads in one transaction
allocation_rows, holders           rows of allocations, and who holds something
consumer_state                     what a claim replaces
leases, lease_sweep, release       claims with an end, giving them back, and the end of named claims
"""
