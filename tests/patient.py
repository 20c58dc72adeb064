"""The service with time limits that no busy machine reaches, for tests that are not about these limits.

As a program it is placement-serve; `APPLICATION` is what uWSGI imports in place of placement.wsgi.api.
"""

from __future__ import annotations

import sys

from placement import extension
from placement.db.engine import dialects
from placement.db.writes import attempt, retry
from tests.children import PATIENCE

#: The options: no request is refused because a server was held up (tests/live/test_blocked.py is about that).
OPTIONS = {"placement_database": {"max_threads": 0, "connect_timeout": int(PATIENCE), "read_timeout": int(PATIENCE)}}
APPLICATION = "tests.load.application"


def be_patient() -> None:
    """Lift the limits of this process: for locks, requests and waiting readers of events."""
    for module in (dialects, attempt):
        module.LOCK_TIMEOUT = int(PATIENCE)
    retry._LONGEST_REQUEST = PATIENCE
    if "v1" in extension.installed():
        from placement.extensions.v1.following import Following

        wait = Following.wait
        Following.wait = lambda self, after, seconds: wait(self, after, 10 * seconds)  # type: ignore[method-assign]


if __name__ == "__main__":
    from placement.cmd import serve

    be_patient()
    sys.exit(serve.main())
