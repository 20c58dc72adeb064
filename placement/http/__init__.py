"""The HTTP layer, for any API; WebOb has the request and the response.

api                      an API as a value: prefix, routes, versions, errors, policy rules, layers
application              the innermost WSGI application: from the path and the method to the endpoint
endpoint                 a handler with all that is checked before it runs
request, body, response  what a handler receives and returns
failures, error_list     the status of every failure, and one form of error documents
service                  what all requests share
environ                  the keys that layers and the application use in the environ
"""
