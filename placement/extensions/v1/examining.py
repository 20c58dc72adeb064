"""Examinations by the doctor for requests: of this worker, in a bounded time."""

from __future__ import annotations

import time
from collections.abc import Collection

from placement import extension
from placement.checks.check import Subject
from placement.extensions.doctor import checks
from placement.extensions.doctor.examination import Examination, examine, until
from placement.http.request import Request

#: Seconds after which no further check begins, and a check ends between two of its statements.
LONGEST = 10.0
#: Checks that are made only where they are asked for by their names, and why.
_LEFT_OUT = {"keystone": "It asks the Identity service, which may take seconds: it is made if it is asked for by name."}


def examined(req: Request, named: Collection[str] = ()) -> Examination:
    """Return what the checks of these names, or all, have found."""
    subject = Subject(
        req.conf, req.database, req.service.policy.rules, index=req.index, on_rows=until(time.monotonic() + LONGEST)
    )
    return examine(subject, checks.of(extension.enabled(req.conf)), named, _LEFT_OUT)
