"""/v1/doctor"""

from __future__ import annotations

import time

from placement.doctor import checks
from placement.doctor.document import document
from placement.doctor.examination import Subject, examine
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.v1.schemas import doctor as schema

#: Seconds after which no further check begins, and a check ends between two of its statements.
_LONGEST = 10.0
#: Checks that are made only where they are asked for by their names, and why.
_LEFT_OUT = {"keystone": "It asks the Identity service, which may take seconds: the parameter check=keystone makes it."}


@endpoint(policy="placement:v1:doctor", query=schema.SHOW, replies=schema.REPLIES)
def show(req: Request) -> Reply:
    """Show what is wrong with the configuration, the database and its data, as this worker sees it."""
    named = schema.names(req.parameters)
    subject = Subject(
        req.conf, req.database, req.service.policy.rules, index=req.index, deadline=time.monotonic() + _LONGEST
    )
    return ok(document(examine(subject, checks.CHECKS, named, _LEFT_OUT), schema.SHOWN), modified=NOW)
