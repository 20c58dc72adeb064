"""The shared layers (docs: layers), each a callable ``(application, service) -> application``.

They are plain WSGI: every request passes through all of them, so each may take microseconds only.  A layer that the
configuration has not switched on returns the application that it was given, and costs nothing.  A layer inside of
``Authentication`` may raise a Failure, which is rendered as the API's.
"""
