"""Claims whose places the service chooses: a call gives consumers and queries, and is told what each consumer holds.

    request       what a call asks for, and the digest by which a repeated request is known
    result        what became of each request
    conditions    the trees in which places may be
    reasons       why a request has no place, as a failure
    claim_record  the records of claims, and what is held by them
    shared        what all calls of a service share
    optimistic    a claim from a recent snapshot, for one consumer; threads that do it at once share a transaction
    uncommitted   what the places of a dry run use
    engine        a search, a transaction, and both again on a newer index where another client was faster
    writing       the transactions

Places are chosen in the index (placement/extensions/v1/pick), and taken by claims like any other
(placement/objects/claims).
"""
