"""The endpoints of the Placement API: one module for each noun, one function for each route and method.

A handler begins with everything valid (``http/endpoint.py``), runs one read or one write, and makes the reply of the
request's version.  ``placement/routes.py`` has the path of each.
"""
