"""The HTTP layer of every API, built on WebOb.

api          an API as a value: prefix, routes, versions, errors, policy rules, layers
application  the innermost WSGI application: maps path and method to an endpoint
endpoint     a handler and the checks that run before it
request      the request that a handler receives
body         parsing of request bodies
response     the response that a handler returns
dry_run      writes that are rolled back, with the response they would get
failures     the failures specific to HTTP, and the status of every failure
error_list   error documents with a list of errors
service      the state that all requests share
environ      the keys that layers and the application use in the WSGI environ
"""
