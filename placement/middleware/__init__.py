"""The layers of the onion (docs: layers), each a callable ``(application, service) -> application``.

They are plain WSGI: a request passes through all of them, so each costs microseconds.  A layer that the configuration
has not switched on returns the application it was given and costs nothing.
"""
