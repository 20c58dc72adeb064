"""Dates in documents."""

from __future__ import annotations

import datetime


def date(moment: datetime.datetime | None) -> str | None:
    """Return a date (naive, UTC) in whole seconds, as ``2026-11-20T08:11:35Z``; MySQL keeps no fractions."""
    return None if moment is None else f"{moment.isoformat(timespec='seconds')}Z"


def precise(moment: datetime.datetime | None) -> str | None:
    """Return a date (naive, UTC) in microseconds, as ``2026-11-20T08:11:35.000250Z``."""
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')}Z"
