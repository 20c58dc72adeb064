"""The query language: from the parameters of a request to frozen values.

query      the values: SearchQuery, ProviderFilter, Group, NameCondition
parse      a query string, read once; the values of single parameters, of which other forms are made, too
existence  what is checked of a query afterwards: its size, and that its resource classes and traits exist
"""
