"""The metric of the doctor (docs/observability.rst)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placement.extensions.doctor import signals
from placement.metrics.instruments import Instruments, Subscription


def subscriptions(instruments: Instruments) -> Iterable[Subscription]:
    """Create the metric, and yield the subscription that updates it."""
    # The value describes the database, so it must outlive the process that set it.
    findings = instruments.gauge(
        "doctor_findings", "Findings of the last complete run of each check", "mostrecent", "check", "severity"
    )

    def set_findings(counts: Mapping[tuple[str, str], int]) -> None:
        for (check, severity), number in counts.items():
            findings.labels(check, severity).set(number)

    yield signals.examined, set_findings
