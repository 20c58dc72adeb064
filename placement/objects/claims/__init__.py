"""Claims: the allocations of consumers, from their placement to their release.

claim, claim_set                   a claim, and the engine that places several in one transaction
claimed_inventory, free_capacity   the inventories by which claims are judged, and their free capacity
joint_claims                       the claims of a request, placed alone or in a batch with other claims
holding, consumer_pages            consumers with their allocations, by uuid and page by page
allocation_rows                    writes of the rows of allocations
consumer_notes                     changes of consumers for the history
leases, lease_sweep, release       claims that expire, their release, and the end of many consumers at once
"""
