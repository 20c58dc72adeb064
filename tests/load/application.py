"""The service of the storms, which uWSGI imports in place of placement.wsgi.api."""

from __future__ import annotations

from placement.wsgi import init_application
from tests.patient import be_patient

be_patient()
application = init_application()
