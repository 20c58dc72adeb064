"""The systemd units restrict the service to what it needs, and systemd accepts them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "etc" / "systemd"
UNIT = UNITS / "placement.service"


def test_the_unit_restricts_the_service():
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    settings = dict(line.split("=", 1) for line in lines)
    assert settings["UMask"] == "0027"
    assert settings["NoNewPrivileges"] == settings["ProtectHome"] == settings["PrivateTmp"] == "true"
    assert settings["ProtectSystem"] == "strict"
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["MemoryMax"]
    assert settings["OOMPolicy"] == "continue"  # only one worker is killed
    assert settings["User"] == "placement"
    # Longer than uWSGI waits for its workers, or systemd would kill them first.
    assert int(settings["TimeoutStopSec"]) > 80


@pytest.mark.parametrize("name", ["placement.service", "placement-leases.service", "placement-leases.timer"])
def test_systemd_accepts_the_unit(tmp_path, name):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    # systemd checks that the programs exist, and the service of a timer.
    for file in UNITS.iterdir():
        (tmp_path / file.name).write_text(re.sub("/opt/placement/bin/[a-z-]+", "/bin/sh", file.read_text()))
    unit = tmp_path / name
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    errors = [line for line in done.stderr.splitlines() if unit.name in line]
    assert errors == []
