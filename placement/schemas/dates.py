"""Dates and times as text."""

from __future__ import annotations

import datetime


def date(time: datetime.datetime | None) -> str | None:
    """Return a time (naive, UTC) in whole seconds: ``2026-11-20T08:11:35Z``; MySQL does not store fractions."""
    return None if time is None else f"{time.isoformat(timespec='seconds')}Z"


def precise(time: datetime.datetime | None) -> str | None:
    """Return a time (naive, UTC) in microseconds: ``2026-11-20T08:11:35.000250Z``."""
    return None if time is None else f"{time.isoformat(timespec='microseconds')}Z"
