"""OpenAPI 3.1 documents, made from the declarations of an API (docs: openapi; ADR 31).

    document                    paths and operations of one version of an API
    components                  schemas and responses that have a name
    portable                    schemas in the words that generators of clients know
    parameters, replies         parts of an operation
    examples                    requests and replies of the reference, where they conform to the version

Nothing here is about one API, route or version: a document shows what endpoints, schemas and policy rules declare.
"""
