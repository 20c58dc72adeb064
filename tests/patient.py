"""The service with time limits that even a busy machine does not reach, for tests of other properties.

As a program it is placement-serve; uWSGI imports `APPLICATION` in place of placement.wsgi.api.
"""

from __future__ import annotations

import sys

from placement import extension
from placement.db.engine import dialects, timeouts
from placement.db.writes import attempt, retry
from placement.index import live
from tests.children import PATIENCE

#: The options: no request is refused because of a delayed server (tests/live/test_blocked.py tests that).
OPTIONS = {"placement_database": {"max_threads": 0, "connect_timeout": int(PATIENCE), "read_timeout": int(PATIENCE)}}
APPLICATION = "tests.load.application"
#: The limits of a process for locks and requests: the module and the name of each, and the value that lifts it.
LIMITS = (
    *((module, "LOCK_TIMEOUT", int(PATIENCE)) for module in (timeouts, dialects, attempt)),
    (timeouts, "_IDLE_TRANSACTION", int(PATIENCE)),
    (retry, "_RETRY_PERIOD", PATIENCE),
    (live, "LOCK_TIME_LIMIT", PATIENCE),
)


def be_patient() -> None:
    """Lift the limits of this process: for locks, requests and waiting readers of events."""
    for limit in LIMITS:
        setattr(*limit)
    if "v1" in extension.installed_extensions():
        from placement.extensions.v1.event_reader import EventReader

        wait = EventReader.wait
        EventReader.wait = lambda self, after, seconds: wait(self, after, 10 * seconds)  # type: ignore[method-assign]


if __name__ == "__main__":
    from placement.cmd import serve

    be_patient()
    sys.exit(serve.main())
