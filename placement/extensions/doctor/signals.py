"""The signal of the doctor (``placement/signals.py``)."""

from __future__ import annotations

from collections.abc import Mapping

from placement.signals import Signal

#: An examination has ended.  Facts: the number of findings of each completed check, by check and severity, zeros
#: included.
examined: Signal[[Mapping[tuple[str, str], int]]] = Signal()
