"""Build the distributions of this repository, check them, and try the wheel on every Python that is found.

``make dist`` runs it.  Then build/dist has the source distribution and the wheel of each project, and a software bill
of materials (SBOM, CycloneDX) of the service with all that production needs.
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
SERVICE = "placement_service"
#: The directories of the repository that are a project with its own pyproject.toml.
PROJECTS = (ROOT, ROOT / "client")
#: Those of setup.cfg's classifiers.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def main() -> None:
    """Build, check and try; exits with the output of the program that fails."""
    shutil.rmtree(TARGET, ignore_errors=True)
    for project in PROJECTS:
        _run("pyproject-build", "--installer", "uv", "--outdir", TARGET, project)
        _run("validate-pyproject", project / "pyproject.toml")
        _run("check-manifest", "--no-build-isolation", project)
    _run("twine", "check", "--strict", *sorted(TARGET.iterdir()))
    [wheel] = TARGET.glob(f"{SERVICE}-*.whl")
    with tempfile.TemporaryDirectory() as directory:
        tried = [home for python in PYTHONS if (home := _installed(wheel, python, Path(directory)))]
        if not tried:
            sys.exit("No Python was found to try the wheel on.")
        _list_components(TARGET / wheel.name.replace("-py3-none-any.whl", ".cdx.json"), tried[0])
    print("\n".join(["", *(f"{path.relative_to(ROOT)}" for path in sorted(TARGET.iterdir()))]))


def _installed(wheel: Path, python: str, directory: Path) -> Path | None:
    """Install the wheel on a Python, and let it serve; return the environment, or None where this Python is missing."""
    environment = os.environ | {"PATH": os.pathsep.join([os.environ["PATH"], *map(str, _of_pyenv())])}
    find = ["uv", "python", "find", "--no-python-downloads", "--system", python]
    found = subprocess.run(find, env=environment, capture_output=True, text=True)
    if found.returncode:
        print(f"Python {python}: NOT TRIED, because it is not installed.", flush=True)
        return None
    home = directory / python
    _run("uv", "venv", "--quiet", "--python", found.stdout.strip(), home)
    _run("uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python", home, f"{wheel}[production]")
    _run(home / "bin/python", ROOT / "tools/try_installation.py", cwd=directory)
    print(f"Python {python}: the wheel serves and answers.", flush=True)
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
