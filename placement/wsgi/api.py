"""The WSGI application, made at import: what uWSGI and mod_wsgi are pointed at."""

from __future__ import annotations

from placement.wsgi import init_application

application = init_application()
