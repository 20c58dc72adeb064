"""Claims whose places the service chooses.

A *call* is one POST /v1/claims: several claim *requests*, each with a consumer and a query.  The result of a request
is a *place*, the providers and amounts that the consumer holds, or a refusal.

    request       calls and their requests, with the digest that identifies a repeated request
    result        the result of each request
    conditions    the trees that a call may use
    reasons       cached explanations of refusals
    claim_record  the records of claims
    shared        state that all calls of a service share
    optimistic    claims from a recent snapshot; concurrent claims share a transaction
    uncommitted   usage that a dry run would add or release
    engine        rounds of search and write, until every request has a result
    writing       the transactions

``placement.extensions.v1.pick`` chooses the places in the index; ``placement.objects.claims`` writes the claims.
"""
