"""The length of a test run; read once pytest has its options."""

from __future__ import annotations

import hypothesis

#: Whether it is ``make test-long``.
LONG = hypothesis.settings.default.max_examples > 100
