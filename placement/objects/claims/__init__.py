"""Claims: what consumers hold, how they get it, and how that ends.

claim, claim_set                   a claim, and the engine that places several in one transaction
claimed_inventory, room            the inventories that claims take from, and what is left in them
joint_claims                       the claims of a request, placed alone or in a batch with those of other threads
holding, consumer_pages            what consumers hold, by uuid and page by page
allocation_rows                    rows of allocations, as claims replace them
consumer_notes                     what the history is told about claims
leases, lease_sweep, release       claims with an end, giving back expired ones, and ending many consumers at once
"""
