"""OpenAPI 3.1 documents, generated from the declarations of an API (docs/adr/0031).

    document                    paths and operations of one version of an API
    components                  named schemas and responses
    portable                    schemas rewritten for client generators
    parameters, replies         parts of an operation
    examples                    requests and responses from docs/api that conform to the version

The package is generic: endpoints, schemas and policy rules declare everything that a document contains.
"""
