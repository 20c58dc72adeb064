"""Claims: the allocations of consumers, how they are placed, and how they end.

claim, claim_set                   a claim, and the engine that places several in one transaction
claimed_inventory, free_capacity   the inventories by which claims are judged, and their free capacity
joint_claims                       the claims of a request, placed alone or in a batch with those of other threads
holding, consumer_pages            consumers with their allocations, by uuid and page by page
allocation_rows                    writes of the rows of allocations
consumer_notes                     changes of consumers for the history
leases, lease_sweep, release       claims that expire, releasing expired ones, and ending many consumers at once
"""
