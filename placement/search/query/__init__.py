"""The query language: from the parameters of a request to frozen values.

query       the values: SearchQuery, ProviderFilter, Group, NameCondition
parse       parses query strings, and the values of single parameters for queries in other formats
existence   checks parsed queries: their size, and the existence of their resource classes and traits
"""
