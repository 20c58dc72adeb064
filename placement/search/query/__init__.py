"""The query language: from the parameters of a request to a search request."""
