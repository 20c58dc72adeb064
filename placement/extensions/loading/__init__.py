"""Providers, inventories, traits and aggregates from a file: what ``placement-manage load`` does (docs: load).

    yaml_source        the text, parsed, with the line of each value
    schema             the JSON schema of the format
    description        the providers that the file describes, one entry each
    plan               what differs between the entries and the database
    provider_contents  what providers have, to compare with
    writing            one transaction that makes the database what the file says
    command            ``placement-manage load``
    demo               a small cloud to try the service with
    extension          what all of it adds to the service

Each module finds mistakes of its own kind, and reports all of them with their lines.
"""
