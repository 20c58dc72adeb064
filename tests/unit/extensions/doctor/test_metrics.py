"""The doctor's metric, which counts findings."""

from __future__ import annotations

from placement.extensions.doctor import signals
from placement.extensions.doctor.extension import EXTENSION
from tests.unit.metrics.registries import counting_registry, modes, samples


def test_findings_of_the_last_examination_are_shown():
    with counting_registry(EXTENSION) as registry:
        signals.examined({("roots", "error"): 2, ("roots", "warning"): 0, ("leases", "warning"): 1})
        signals.examined({("leases", "warning"): 0})
    assert samples(registry, "doctor_findings") == {("roots", "error"): 2}
    assert registry.get_sample_value("placement_doctor_findings", {"check": "leases", "severity": "warning"}) == 0
    assert modes(registry)["doctor_findings"] == "mostrecent"
