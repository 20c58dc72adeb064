"""The length of a test run; read once pytest has its options."""

from __future__ import annotations

import hypothesis

#: Whether this is a run of ``make test-long``.
LONG = hypothesis.settings.default.max_examples > 100
