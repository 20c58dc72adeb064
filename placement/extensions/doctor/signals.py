"""The instrumentation event of the doctor (``placement/signals.py``)."""

from __future__ import annotations

from collections.abc import Mapping

from placement.signals import Signal

#: An examination has ended: how many findings there are, by check and severity, zeros included.  Checks that did not
#: run to their end are left out.
examined: Signal[[Mapping[tuple[str, str], int]]] = Signal()
