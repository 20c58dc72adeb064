"""The query language: from the parameters of a request to frozen values.

query      the values: SearchQuery, ProviderFilter, Group, NameCondition
parse      a query string, parsed once
terms      the values of single parameters
existence  whether the resource classes and traits of a query exist
"""
