"""The commands of docs/backup.rst, run unchanged, on a database called "placement".

Only the directory /backup and the path of SQLite's file are replaced.  Clients find the server by their own variables
and files, as on the host of an operator.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping

import sqlalchemy as sa

from tests import children
from tests.docs import blocks as documents
from tests.servers import Missing

_NAMES = {"sqlite": ["SQLite"], "mariadb": ["MariaDB, MySQL", "MariaDB"], "postgresql": ["PostgreSQL"]}
_TITLE = re.compile(r"^(\S.*)\n[=-]{3,}\n", re.MULTILINE)
#: The path of the SQLite database on the page.
_FILE = "/var/lib/placement/placement.sqlite"


def blocks(section: str) -> dict[str, str]:
    """Return the literal blocks of a section of the page, by the text before them; raise KeyError if it is unknown."""
    _, *pieces = _TITLE.split(documents.PAGES["docs/backup.rst"])
    text = dict(zip(pieces[::2], pieces[1::2], strict=True))[section]
    matches = re.findall(r"^(\S.*?):\n\n(\.\. code-block::.*\n(?:(?:   .+)?\n)+)", text, re.MULTILINE)
    return {title: next(documents.blocks(block)).text for title, block in matches}


class Operator:
    """An operator, who runs the commands of the page for one database.

    Attributes:
        directory: The directory that the page calls /backup.
    """

    def __init__(self, url: str) -> None:
        """Write the files that configure the server for clients.

        Args:
            url: The URL of the database; on a server it is called "placement".
        """
        self._url = sa.make_url(url)
        backend = self._url.get_backend_name()
        self._kind = "mariadb" if backend == "mysql" else backend
        self.directory = children.run_directory() / f"backup-{secrets.token_hex(4)}"
        self.directory.mkdir()
        options = {"host": self._url.host, "port": self._url.port, "user": self._url.username}
        options |= {"password": self._url.password, "protocol": "tcp"}
        lines = [f"{name}={value}\n" for name, value in options.items()]
        (self.directory / ".my.cnf").write_text("".join(["[client]\n", *lines, "skip-ssl\n"]))

    def back_up(self) -> None:
        """Write a backup by the commands of the page."""
        self.run("Backup")

    def restore(self) -> None:
        """Restore the backup, by all steps of the page for this kind of database."""
        if self._kind != "sqlite":
            self.run("Load the backup beside the database")
        self.run("Replace the database")

    def run(self, section: str, words: Mapping[str, str] = {}) -> str:
        """Run the commands of a section for this kind of database, with words replaced; return their output.

        Raises:
            KeyError: The section has no commands for this kind of database.
            Missing: A program is not installed.
            RuntimeError: A command has failed; the text is its output.
        """
        commands_by_text = blocks(section)
        commands = next(commands_by_text[name] for name in _NAMES[self._kind] if name in commands_by_text)
        for program in re.findall(r"^(\w\S*)", commands, re.MULTILINE):
            if shutil.which(program) is None:
                raise Missing(f"{program} is not installed")
        for old, new in words.items():
            assert old in commands, f"{section} has no {old!r}"
            commands = commands.replace(old, new)
        commands = commands.replace("/backup/", f"{self.directory}/").replace(_FILE, str(self._url.database))
        completed = subprocess.run(
            ["sh", "-e", "-c", commands], env=os.environ | self._address, capture_output=True, text=True, timeout=300
        )
        if completed.returncode:
            raise RuntimeError(f"{commands}\n{completed.stdout}{completed.stderr}")
        return completed.stdout

    @property
    def _address(self) -> Mapping[str, str]:
        if self._kind != "postgresql":
            return {"HOME": str(self.directory)}
        url = self._url
        return {"PGHOST": str(url.host), "PGPORT": str(url.port), "PGUSER": str(url.username)} | {
            "PGPASSWORD": str(url.password)
        }
