"""The endpoints of the Placement API: a module for each noun, a function for each route and method.

A handler receives a validated request (``http/endpoint.py``), runs one read or one write, and returns the response for
the version of the request.  ``placement/routes.py`` contains the paths.
"""
