"""Copy the repository without its extensions: ``python tools/copy_core.py DIRECTORY`` (docs: architecture-extensions).

The copy contains the files tracked by git, except files in directories named ``extensions``.  Its setup.cfg declares
nothing in ``placement/extensions``.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTENSIONS = "placement.extensions"


def copy(target: Path) -> None:
    """Copy the core to a directory, which is created if necessary."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        path = Path(name)
        if "extensions" in path.parts or not (ROOT / path).is_file():
            continue
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target / path)
    _remove_declarations(target / "setup.cfg")


def _remove_declarations(setup: Path) -> None:
    """Remove entry points and package data of extensions, and groups that become empty, from a setup.cfg."""
    config = configparser.RawConfigParser()
    config.optionxform = str  # type: ignore[assignment, method-assign]
    config.read(setup)
    points, data = config["options.entry_points"], config["options.package_data"]
    for group, lines in points.items():
        remaining = [line for line in lines.splitlines() if line.strip() and not re.search(rf"\b{EXTENSIONS}\.", line)]
        if remaining:
            points[group] = "\n".join(["", *remaining])
        else:
            del points[group]
    for package in [name for name in data if name.startswith(EXTENSIONS)]:
        del data[package]
    with setup.open("w") as file:
        config.write(file)


if __name__ == "__main__":
    copy(Path(sys.argv[1]))
