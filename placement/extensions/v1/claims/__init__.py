"""Claims whose places the service chooses: a call names consumers and queries, and learns who holds what.

    request       what a call asks for, and the digest by which a repeated request is known
    result        what became of each request
    conditions    in which trees places may be
    reasons       why a request has no place, as a failure
    claim_record  the records of claims, and what is held with them
    shared        what all calls of a service share
    guessing      a call for one consumer, by a guess, perhaps with those of other threads
    uncommitted   what the places of a dry run use
    engine        search, transaction, and again on a newer index where another client was faster
    writing       the transactions

The places are chosen in the index (placement/extensions/v1/pick), and taken by claims like any other
(placement/objects/claims).
"""
