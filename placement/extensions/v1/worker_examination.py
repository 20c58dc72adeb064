"""Examinations by the doctor for requests: of this worker, in a bounded time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection
from weakref import WeakKeyDictionary

from placement import extension
from placement.checks.check import Subject
from placement.db.database import Database
from placement.extensions.doctor import checks
from placement.extensions.doctor.examination import Examination, examine, until
from placement.http.request import Request

#: Seconds after which no further check begins, and a check ends between two of its statements.
LONGEST = 10.0
#: Checks that are made only where they are asked for by their names, and why.
_LEFT_OUT = {"keystone": "It asks the Identity service, which may take seconds: it is made if it is asked for by name."}


#: The examinations of all checks that were made last, by database, with the time by the monotonic clock.
_RECENT: WeakKeyDictionary[Database, tuple[float, Examination]] = WeakKeyDictionary()
_EXAMINING = threading.Lock()


def recent_examination(req: Request, seconds: float) -> Examination:
    """Return the findings of all checks, at most this many seconds old; one request at a time runs the checks."""
    with _EXAMINING:
        at, found = _RECENT.get(req.database, (-math.inf, None))
        if found is None or time.monotonic() - at > seconds:
            found = examine_worker(req)
            _RECENT[req.database] = time.monotonic(), found
        return found


def examine_worker(req: Request, named: Collection[str] = ()) -> Examination:
    """Return what the checks of these names, or all, have found."""
    subject = Subject(
        req.conf, req.database, req.service.policy.rules, index=req.index, on_rows=until(time.monotonic() + LONGEST)
    )
    return examine(subject, checks.of(extension.enabled(req.conf)), named, _LEFT_OUT)
