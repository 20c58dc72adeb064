"""The length of a test run; read once pytest has its options."""

from __future__ import annotations

from tests.conftest import is_long

#: Whether this is a run of ``make test-long``.
LONG = is_long()
