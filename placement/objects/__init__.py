"""The nouns of the API as records of the database: SQL, locks, generations, and what the feed has to record.

Reads return frozen records.  What writes checks, advances and records in the feed by itself, in one transaction.

provider, inventory, trait, aggregate, resource_class   records of providers and of what they have
allocation, usage                                       records of what consumers hold
locked_provider                                         the only object that changes a provider
tree, provider_rows                                     its parts: trees of providers; locks and generations of rows
ancestry                                                the root of a provider, in rows that may form loops
claims                                                  what consumers are to hold, and how it is given and ends
consumer                                                consumers, and their owners
capacity                                                the one rule of what fits
reshape                                                 inventories and allocations changed together
over_commitment                                         inventories of which more is used than they have, for operators
"""
