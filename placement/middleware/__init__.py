"""The shared layers (docs: layers), each a callable ``(application, service) -> application``.

They are plain WSGI, and every request passes through all of them, so each may take microseconds only.  A layer that the
configuration does not enable returns its application unchanged and costs nothing.  A layer inside ``Authentication``
may raise a Failure, which is rendered in the form of the API.
"""
