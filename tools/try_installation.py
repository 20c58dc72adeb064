"""Start the service of this Python environment as described in README.rst, and check that it works.

Run it with the Python of the environment: ``/opt/placement/bin/python tools/try_installation.py [CLIENT ...]``.  Each
CLIENT is an environment with the client, which is tried as well.  The script needs only the standard library, writes to
a temporary directory, and exits with an error at the first failure.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.rst"
PROGRAMS = Path(sys.prefix) / "bin"
#: Seconds to wait for the service.
TIMEOUT = 300
HOST, CONSUMER = "c9a3e7a0-5c1a-4b0e-9d0c-1f6f1d1f7a01", "7c1f0a52-0b5e-4a0f-8f6b-2d3e4f5a6b7c"
#: Modules that need the extras of production.
MODULES = ("placement.middleware.keystone", "placement.metrics.instruments", "pymysql")
#: A client that leases the capacity left on the host.
LEASE = """
import sys, uuid
from placement_client import Client, Token
owner = {"project_id": "demo", "user_id": "me", "consumer_type": "INSTANCE"}
with Client(sys.argv[1], Token("admin")) as client:
    with client.lease(uuid.uuid4(), "resources=VCPU:4", **owner, expires_in=3600) as held:
        assert client.capacity("resources=VCPU:4").count == 0, held.claim
    assert client.capacity("resources=VCPU:4").count == 1
"""


def main() -> None:
    """Import modules, create the schema, serve, claim, lease and stop."""
    for module in MODULES:
        import_module(module)
    with tempfile.TemporaryDirectory() as directory:
        database = f"[placement_database]\nconnection = sqlite:///{directory}/placement.sqlite\n"
        Path(directory, "placement.conf").write_text(f"{database}[api]\nauth_strategy = noauth2\n")
        environment = os.environ | {"OS_PLACEMENT_CONFIG_DIR": directory}
        for program, *words in (("placement-manage", "db", "sync"), ("placement-status", "upgrade", "check")):
            subprocess.run([PROGRAMS / program, *words], cwd=directory, env=environment, check=True)
        with _serve(directory, environment) as url:
            _claim(url)
            for client in sys.argv[1:]:
                subprocess.run([Path(client, "bin", "python"), "-c", LEASE, url], cwd=directory, check=True)


@contextlib.contextmanager
def _serve(directory: str, environment: dict[str, str]) -> Iterator[str]:
    """Run the command from the README on a free port; it must exit with 0 on SIGTERM."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    [command] = re.findall(r"^    (uwsgi --http-socket (?:.*\\\n)*.*)$", README.read_text(), re.MULTILINE)
    program, *words = shlex.split(command.replace("\\\n", "").replace("127.0.0.1:8778", address))
    with Path(directory, "log").open("w") as log:
        service = subprocess.Popen(
            [PROGRAMS / program, *words], cwd=directory, env=environment, stderr=log, stdout=log, process_group=0
        )
    try:
        _wait(service, f"http://{address}/", Path(log.name))
        yield f"http://{address}"
        _stop(service)
        if service.returncode != 0:
            sys.exit(f"uwsgi has ended with {service.returncode}:\n{Path(log.name).read_text()}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(service.pid, signal.SIGKILL)


def _stop(service: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM repeatedly: the master of uWSGI ignores it until all workers have started."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end and service.poll() is None:
        service.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            service.wait(10)


def _wait(service: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end and service.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=TIMEOUT):
            return
        time.sleep(0.1)
    sys.exit(f"The service does not respond:\n{log.read_text()}")


def _claim(url: str) -> None:
    """Create a host and claim a part of its capacity."""
    _send(url, "POST", "/resource_providers", {"name": "host1", "uuid": HOST})
    inventories = {"VCPU": {"total": 16}}
    _send(url, "PUT", f"/resource_providers/{HOST}/inventories", {
        "resource_provider_generation": 0, "inventories": inventories
    })  # fmt: skip
    candidates = _send(url, "GET", "/allocation_candidates?resources=VCPU:12")["allocation_requests"]
    claim = {"project_id": "demo", "user_id": "me", "consumer_type": "INSTANCE", "consumer_generation": None}
    _send(url, "PUT", f"/allocations/{CONSUMER}", {**candidates[0], **claim})
    used = _send(url, "GET", f"/resource_providers/{HOST}/usages")["usages"]
    if used != {"VCPU": 12}:
        sys.exit(f"12 VCPU were claimed, but the usage is {used}")


def _send(url: str, method: str, path: str, body: Any = None) -> Any:
    """Return the JSON of the response, or raise HTTPError."""
    headers = {
        "X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39", "Content-Type": "application/json"
    }  # fmt: skip
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        return json.loads(response.read() or "null")


if __name__ == "__main__":
    main()
