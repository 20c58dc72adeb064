"""The WSGI application for uWSGI and mod_wsgi, created on import."""

from __future__ import annotations

from placement.wsgi import init_application

application = init_application()
