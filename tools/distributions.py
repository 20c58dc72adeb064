"""Build the distributions of this repository, check them, and try the wheels on every Python that is found.

``make dist`` runs it.  Then build/dist has the source distribution and the wheel of each project, and a software bill
of materials (SBOM, CycloneDX) of the service with all that production needs.  With ``--every-python`` it fails at once
if a Python is missing.
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
#: The directories of the repository that are a project with its own pyproject.toml.
PROJECTS = (ROOT, ROOT / "client")
#: The Python versions in the classifiers of setup.cfg, and of the client.
OF_SERVICE = ("3.11", "3.12", "3.13", "3.14")
OF_CLIENT = ("3.10", *OF_SERVICE)


def main() -> None:
    """Build, check and try; exits with the output of the program that fails."""
    pythons = {version: python for version in OF_CLIENT if (python := _found(version))}
    if missing := ", ".join(version for version in OF_CLIENT if version not in pythons):
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
            _installed(client, python, Path(directory, f"client-{version}")) for version, python in pythons.items()
        ]
        homes = [
            _installed(f"{service}[production]", pythons[version], Path(directory, version))
            for version in OF_SERVICE
            if version in pythons
        ]
        if not homes:
            sys.exit("No Python was found to try the service on.")
        for home in homes:
            _run(home / "bin/python", ROOT / "tools/try_installation.py", *clients, cwd=Path(directory))
            print(f"Python {home.name}: the service answers, and clients on {', '.join(pythons)} use it.", flush=True)
        _list_components(TARGET / service.name.replace("-py3-none-any.whl", ".cdx.json"), homes[0])
    print("\n".join(["", *(f"{path.relative_to(ROOT)}" for path in sorted(TARGET.iterdir()))]))


def _found(version: str) -> str | None:
    """Return the path of a Python of this version."""
    environment = os.environ | {"PATH": os.pathsep.join([os.environ["PATH"], *map(str, _of_pyenv())])}
    find = ["uv", "python", "find", "--no-python-downloads", "--system", version]
    found = subprocess.run(find, env=environment, capture_output=True, text=True)
    return None if found.returncode else found.stdout.strip()


def _installed(wheel: str | Path, python: str, home: Path) -> Path:
    """Install a wheel into a new environment, and return that."""
    _run("uv", "venv", "--quiet", "--python", python, home)
    _run("uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python", home, wheel)
    return home


def _list_components(bill: Path, home: Path) -> None:
    """Write the SBOM of an environment; its subject is the service, and the others are its components."""
    _run("cyclonedx-py", "environment", "--output-reproducible", "--output-file", bill, home)
    listed = json.loads(bill.read_text())
    [service] = [each for each in listed["components"] if each["name"] == "placement-service"]
    listed["components"].remove(service)
    service["externalReferences"] = [each for each in service["externalReferences"] if each["type"] != "distribution"]
    listed["metadata"]["component"] = service
    bill.write_text(json.dumps(listed, indent=2))


def _of_pyenv() -> Iterator[Path]:
    """Return the programs of the versions that pyenv has installed, as its shims run only the chosen ones."""
    return Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin")


def _run(*words: str | Path, cwd: Path = ROOT) -> None:
    """Run a program, and show its output only if it fails: that of a build has thousands of lines."""
    print("+", *words, flush=True)
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{words[0]} has failed.")


if __name__ == "__main__":
    main()
