"""Loading of providers, inventories, traits and aggregates from a YAML file (docs: load).

    yaml_source        parsed YAML with the line of each value
    schema             the JSON schema of the format
    description        the entries of the file, one per provider
    plan               the differences between the entries and the database
    provider_contents  inventories, traits and aggregates of providers in the database
    writing            the transaction that applies a plan
    command            ``placement-manage load``
    demo               a small cloud for trying the service
    extension          the declaration of the extension

Each module reports all mistakes of its kind at once, with their lines.
"""
