"""The unit for systemd leaves the service what it needs, and no more."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "etc" / "systemd" / "placement.service"


def test_the_unit_bounds_what_the_service_can_do():
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    told = dict(line.split("=", 1) for line in lines)
    assert told["UMask"] == "0027"
    assert told["NoNewPrivileges"] == told["ProtectHome"] == told["PrivateTmp"] == "true"
    assert told["ProtectSystem"] == "strict"
    assert told["CapabilityBoundingSet"] == ""
    assert told["MemoryMax"]
    assert told["OOMPolicy"] == "continue"  # one worker ends, and not all of them
    assert told["User"] == "placement"
    # More than uWSGI gives its workers, or systemd would kill them.
    assert int(told["TimeoutStopSec"]) > 80


def test_systemd_understands_the_unit(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / "placement.service"
    # systemd looks whether the programs are there.
    unit.write_text(re.sub("/opt/placement/bin/[a-z]+", "/bin/sh", UNIT.read_text()))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert complaints == []
