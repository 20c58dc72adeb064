"""The nouns of the API as database records: SQL, locks, generations, and changes for the feed and the history.

Reads return records.  Each write checks its conditions, advances generations and records the change itself, in
one transaction.

provider                        providers, as records
inventory, trait, aggregate     records of a provider's inventories, traits and aggregates
resource_class                  records of resource classes, and changes of them
allocation, usage               allocations on a provider, and sums of allocations
locked_provider                 changes of a provider, under the lock of its row
tree, provider_rows             parts of these changes: trees of providers; locks and generations of rows
reshape                         a change of inventories and allocations in one transaction
claims                          the allocations of consumers, from the claim to the release
consumer                        rows of consumers, and their owners
capacity                        the capacity rule: the amounts that fit
over_commitment                 inventories whose usage exceeds their capacity
ancestry                        roots of a forest that may contain cycles
"""
