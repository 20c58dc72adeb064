"""The nouns of the API as records of the database: SQL, locks, generations, and what the feed has to record.

Reads return frozen records.  What writes checks, advances and records in the feed by itself, in one transaction.

provider, inventory, trait, aggregate, resource_class   records of providers and of what they have
allocation, usage                                       records of what consumers hold
locked_provider                                         the only object that changes a provider
tree, provider_rows                                     its parts: trees of providers; locks and generations of rows
claim, claim_set                                        what consumers are to hold, and the transaction that grants it
consumer, claimed_inventory                             its parts: consumers, and inventories with their usage
capacity                                                the one rule of what fits
reshape                                                 inventories and allocations changed together
holders                                                 who holds what: pages of consumers, and their number by provider
over_commitment                                         inventories of which more is used than they have, for operators
"""
