"""Distributions whose files are blocks of a page, each with its path as the caption."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.docs.blocks import PAGES, blocks, text_of


def install(page: str, site: Path) -> None:
    """Put the modules of a page, and the entry points of its pyproject.toml, into a directory, as an installer does."""
    declared = tomllib.loads(text_of(page, "pyproject.toml"))
    tools, project = declared["tool"]["setuptools"], declared["project"]
    for block in blocks(PAGES[page]):
        path = Path(block.caption)
        if path.stem in tools.get("py-modules", ()) or str(path.parent) in tools.get("packages", ()):
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(block.text)
    information = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    )
    (information / "entry_points.txt").write_text("\n".join(groups))
