"""placement-serve with maintenance after each write, so that a test need not wait a minute for it."""

from __future__ import annotations

import sys
import threading

from placement.cmd import serve
from placement.db import feed
from placement.db.writes.attempt import Attempts
from tests.patient import be_patient

_maintain = Attempts.maintain
_thread = threading.local()


def maintain(attempts: Attempts, writer: feed.Writer) -> None:
    """Maintain as usual; the writes of a maintenance do not start another one."""
    _thread.maintains = True
    try:
        _maintain(attempts, writer)
    finally:
        _thread.maintains = False


if __name__ == "__main__":
    be_patient()
    Attempts.maintain = maintain  # type: ignore[method-assign]
    feed.Writer.maintenance_due = lambda _writer: not getattr(_thread, "maintains", False)  # type: ignore[method-assign]
    sys.exit(serve.main())
