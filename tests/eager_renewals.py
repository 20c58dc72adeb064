"""The service with an index file that it renews after a few changes, so that a test need not make thousands.

Run as a script, it is placement-serve; uWSGI and mod_wsgi import its ``application``.
"""

from __future__ import annotations

import sys

from placement.index import live
from tests.patient import be_patient

be_patient()
# As many as the changes of two claims.
setattr(live, "_MIN_CHANGES", 4)  # noqa: B010 - mypy knows a constant

if __name__ == "__main__":
    from placement.cmd import serve

    sys.exit(serve.main())
else:
    from placement.wsgi import init_application

    application = init_application()
