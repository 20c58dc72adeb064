"""The systemd units restrict the service to the necessary rights, and systemd accepts them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import servers
from tests.clock import PATIENCE

UNITS = Path(__file__).parents[2] / "etc" / "systemd"
UNIT = UNITS / "placement.service"
SERVICES = ["placement.service", "placement-leases.service"]


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
    # Longer than uWSGI waits for its workers; otherwise systemd would kill them first.
    assert int(settings["TimeoutStopSec"]) > 80


@pytest.mark.parametrize("name", SERVICES)
def test_no_unit_deletes_the_index_file(name):
    """systemd deletes all files of the user in /dev/shm if any of its units has RemoveIPC, even if it runs briefly."""
    assert "\nRemoveIPC=" not in (UNITS / name).read_text()


@pytest.mark.parametrize("name", [*SERVICES, "placement-leases.timer"])
def test_systemd_accepts_the_unit(tmp_path, name):
    analyze = _systemd_analyze()
    # systemd checks that the programs exist, and that the service of a timer does.
    for file in UNITS.iterdir():
        (tmp_path / file.name).write_text(re.sub("/opt/placement/bin/[a-z-]+", "/bin/sh", file.read_text()))
    result = subprocess.run([analyze, "verify", str(tmp_path / name)], capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


@pytest.mark.parametrize("name", SERVICES)
def test_the_exposure_of_the_service_is_low(name):
    """The exposure is at most 10; a service without any restriction has 9.6."""
    argv = [_systemd_analyze(), "security", "--offline=true", "--no-pager", str(UNITS / name)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    exposure = re.search(rf"Overall exposure level for {name}: ([0-9.]+)", result.stdout)
    assert exposure is not None, result
    assert float(exposure[1]) < 2.0


def _systemd_analyze():
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        raise servers.Missing("systemd-analyze is not installed: `make servers` installs it with systemd")
    return analyze
