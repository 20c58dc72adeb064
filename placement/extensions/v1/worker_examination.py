"""Examinations of this worker process by the doctor, in bounded time."""

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
from placement.extensions.doctor.examination import Examination, examine, time_limit
from placement.http.request import Request

#: Seconds after which no further check starts, and a running check ends between two of its statements.
MAX_SECONDS = 10.0
#: Checks that run only if requested by name, with the reason.
_ONLY_BY_NAME = {"keystone": "It asks the Identity service, which may take seconds: request it by name to run it."}

#: The last examination with all checks, and its time by the monotonic clock, by database.
_RECENT: WeakKeyDictionary[Database, tuple[float, Examination]] = WeakKeyDictionary()
#: The lock of ``_RECENT``, held during an examination.
_EXAMINING = threading.Lock()


def recent_examination(req: Request, seconds: float) -> Examination:
    """Return an examination with all checks, at most ``seconds`` old; one request at a time runs the checks."""
    with _EXAMINING:
        at, examination = _RECENT.get(req.database, (-math.inf, None))
        if examination is None or time.monotonic() - at > seconds:
            examination = examine_worker(req)
            _RECENT[req.database] = time.monotonic(), examination
        return examination


def examine_worker(req: Request, named: Collection[str] = ()) -> Examination:
    """Return an examination with the named checks; with all checks if none are named."""
    subject = Subject(
        req.conf,
        req.database,
        req.service.policy.rules,
        index=req.index,
        on_rows=time_limit(time.monotonic() + MAX_SECONDS),
    )
    return examine(subject, checks.all_checks(extension.enabled(req.conf)), named, _ONLY_BY_NAME)
