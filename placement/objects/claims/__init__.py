"""Claims: what consumers hold, how it is given, and how it ends.

claim, claim_set                   a claim, and the engine that places several in one transaction
claimed_inventory, room            the inventories that claims take from, and what is left of them
joint_claims                       the claims of a request, alone or in a batch of several threads
holding, consumer_pages            what consumers hold, by uuid and page by page
allocation_rows                    rows of allocations, as claims replace them
consumer_notes                     what the history is told of a claim
leases, lease_sweep, release       claims with an end, giving them back, and the end of named claims
"""
