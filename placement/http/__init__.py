"""The HTTP layer of every API, built on WebOb.

api                      an API as a value: prefix, routes, versions, errors, policy rules, layers
application              the innermost WSGI application: maps path and method to an endpoint
endpoint                 a handler and the checks that run before it
request, body, response  the request that a handler receives and the response that it returns
dry_run                  writes that are rolled back, with the response they would get
failures, error_list     the HTTP status of every failure, and the error documents with a list of errors
service                  the state that all requests share
environ                  the keys that layers and the application use in the WSGI environ
"""
