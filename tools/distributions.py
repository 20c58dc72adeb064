"""Build the distributions of this repository, check them, and try the wheels on every installed Python.

``make dist`` runs it.  It writes the source distribution and the wheel of each project to build/dist, and a software
bill of materials (SBOM, CycloneDX) of the service with the requirements of production.  With ``--every-python`` it
fails immediately if a supported Python is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "build" / "dist"
#: The directories of projects with their own pyproject.toml.
PROJECTS = (ROOT, ROOT / "client")
#: The supported Python versions: the versions in the classifiers of setup.cfg and of the client.
SERVICE_VERSIONS = ("3.11", "3.12", "3.13", "3.14")
CLIENT_VERSIONS = ("3.10", *SERVICE_VERSIONS)


def main() -> None:
    """Build, check and try the distributions; exit with the output of the first failed command."""
    pythons = {version: python for version in CLIENT_VERSIONS if (python := _find_python(version))}
    if missing := ", ".join(version for version in CLIENT_VERSIONS if version not in pythons):
        if "--every-python" in sys.argv[1:]:
            sys.exit(f"Not installed: Python {missing}.")
        print(f"NOT TRIED, because it is not installed: Python {missing}.", flush=True)
    shutil.rmtree(TARGET, ignore_errors=True)
    for project in PROJECTS:
        _run("pyproject-build", "--installer", "uv", "--outdir", TARGET, project)
        _run("validate-pyproject", project / "pyproject.toml")
        _run("check-manifest", "--no-build-isolation", project)
    _run("twine", "check", "--strict", *sorted(TARGET.iterdir()))
    [service], [client] = (TARGET.glob(f"placement_{name}-*.whl") for name in ("service", "client"))
    with tempfile.TemporaryDirectory() as directory:
        clients = [
            _install(client, python, Path(directory, f"client-{version}")) for version, python in pythons.items()
        ]
        homes = [
            _install(f"{service}[production]", pythons[version], Path(directory, version))
            for version in SERVICE_VERSIONS
            if version in pythons
        ]
        if not homes:
            sys.exit("No Python was found to try the service on.")
        for home in homes:
            _run(home / "bin/python", ROOT / "tools/try_installation.py", *clients, cwd=Path(directory))
            print(f"Python {home.name}: the service works with clients on {', '.join(pythons)}.", flush=True)
        _list_components(TARGET / service.name.replace("-py3-none-any.whl", ".cdx.json"), homes[0])
    print("\n".join(["", *(f"{path.relative_to(ROOT)}" for path in sorted(TARGET.iterdir()))]))


def _find_python(version: str) -> str | None:
    """Return the path of a Python of this version; None if it is not installed."""
    environment = os.environ | {"PATH": os.pathsep.join([os.environ["PATH"], *map(str, _pyenv_directories())])}
    find = ["uv", "python", "find", "--no-python-downloads", "--system", version]
    done = subprocess.run(find, env=environment, capture_output=True, text=True)
    return None if done.returncode else done.stdout.strip()


def _install(wheel: str | Path, python: str, home: Path) -> Path:
    """Install a wheel into a new virtual environment, and return its directory."""
    _run("uv", "venv", "--quiet", "--python", python, home)
    _run("uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python", home, wheel)
    return home


def _list_components(bill: Path, home: Path) -> None:
    """Write the SBOM of an environment, with the service as its subject and the other packages as components."""
    _run("cyclonedx-py", "environment", "--output-reproducible", "--output-file", bill, home)
    listed = json.loads(bill.read_text())
    [service] = [component for component in listed["components"] if component["name"] == "placement-service"]
    listed["components"].remove(service)
    service["externalReferences"] = [link for link in service["externalReferences"] if link["type"] != "distribution"]
    listed["metadata"]["component"] = service
    bill.write_text(json.dumps(listed, indent=2))


def _pyenv_directories() -> Iterator[Path]:
    """Return the bin directories of all versions installed by pyenv, whose shims run only the selected versions."""
    return Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin")


def _run(*words: str | Path, cwd: Path = ROOT) -> None:
    """Run a command; show its output, which may have thousands of lines, only if it fails."""
    print("+", *words, flush=True)
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{words[0]} has failed.")


if __name__ == "__main__":
    main()
