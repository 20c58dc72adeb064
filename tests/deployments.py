"""This service under the servers that deployment tools start, with the configuration that the tools write.

tests/live/deployments contains, for each tool, the files that the tool renders, at their paths on a host or in a
container: written after the observed output of the tools, with example addresses.  They are copied below a directory,
with other addresses, another user and number of processes, and the directory before each path.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import sqlalchemy as sa

from tests import children, running, web_servers
from tests.running import ROOT, Service
from tests.servers import Missing

FILES = Path(__file__).parent / "live" / "deployments"
#: The start of an absolute path that is not the path of a URL.
_PATH = re.compile(r"(?<![\w.:/@-])/(?=(etc|openstack|opt|run|tmp|usr|var)/)")
#: The entries of a virtual environment besides its libraries.
_PROGRAMS = ("python", "python3", "uwsgi", "placement-manage", "placement-status", "oslo-config-validator")


class Deployment:
    """The files of a deployment, below the directory ``root``, and its commands.

    Args:
        name: A directory of tests/live/deployments.
        environment: The path of its virtual environment with this service, and ``bin/placement-api``.
        directories: The directories that the tool creates.
        addresses: Replacements for the example addresses of databases, Keystone, memcached, and for the password.
    """

    def __init__(
        self,
        name: str,
        environment: str,
        directories: Sequence[str],
        addresses: Mapping[str, str],
    ) -> None:
        self.root = children.run_directory() / f"{name}-{secrets.token_hex(4)}"
        self.port, self.stats_port = children.free_port(), children.free_port()
        self._addresses = addresses
        self._bin = self.path(environment) / "bin"
        _make_environment(self.path(environment))
        for place in directories:
            self.path(place).mkdir(parents=True)
        for source in sorted(path for path in (FILES / name).rglob("*") if path.is_file()):
            target = self.root / source.relative_to(FILES / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._here(source.read_text()))
            if target.name == "placement.conf":
                target.write_text(f"{target.read_text()}\n[placement]\nindex_directory = {self.root}/index\n")
            target.chmod(0o755 if target.suffix == ".sh" else 0o644)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-Rh", "nobody", self.root], check=True)

    def path(self, path: str) -> Path:
        """Return the real path of an absolute path of the host or container."""
        return self.root / path.removeprefix("/")

    def run(self, *words: str, expected: int = 0) -> str:
        """Run a command as the user of the service, which must exit with the expected code; return its output."""
        completed = subprocess.run(
            [*web_servers.unprivileged_prefix(), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=children.PATIENCE,
        )
        assert completed.returncode == expected, (
            f"{words} ended with {completed.returncode}:\n{completed.stdout}{completed.stderr}"
        )
        return completed.stdout

    def shell(self, text: str) -> str:
        """Run lines of a shell that name its paths, like `run`."""
        return self.run("sh", "-ec", _PATH.sub(f"{self.root}/", text))

    @contextlib.contextmanager
    def serving(self, *words: str) -> Iterator[Service]:
        """Provide the service started by a command."""
        argv = [*web_servers.unprivileged_prefix(), *words]
        yield from running.run(argv, self.port, self.path("/etc/placement"), environment=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes, which a host or container has by its paths."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        return variables | {
            "OS_PLACEMENT_CONFIG_DIR": str(self.path("/etc/placement")),
            "PATH": f"{self._bin}:{os.environ.get('PATH', '')}:/usr/sbin",
            "PYTHONPATH": ":".join(web_servers.python_paths()),
        }

    def _here(self, text: str) -> str:
        for old, new in self._addresses.items():
            text = text.replace(old, new)
        text = re.sub(r"Listen \S+|(?<=VirtualHost )\*:\d+", self._listening, text)
        text = re.sub(r"(?<== )(192\.0\.2\.21|0\.0\.0\.0):(8778|8780)\b", f"127.0.0.1:{self.port}", text)
        text = text.replace("0.0.0.0:1717", f"127.0.0.1:{self.stats_port}")
        user, group = os.geteuid() or web_servers.NOBODY, os.getegid() or web_servers.NOGROUP
        text = text.replace("uid = placement", f"uid = {user}").replace("gid = placement", f"gid = {group}")
        text = text.replace("user=placement group=placement", f"user=#{user} group=#{group}")
        # Each process loads the service, which uses a processor for seconds.
        text = re.sub(r"\bprocesses( = |=)[3-9]\b", r"processes\g<1>2", text)
        return _PATH.sub(f"{self.root}/", text)

    def _listening(self, match: re.Match[str]) -> str:
        return f"Listen 127.0.0.1:{self.port}" if match[0].startswith("Listen") else f"127.0.0.1:{self.port}"


def apache(deployment: Deployment, site: str) -> list[str]:
    """Return the arguments of apache2 that start Apache with this site, which the packages' main file loads.

    Raises:
        Missing: Apache or mod_wsgi is not installed.
    """
    if shutil.which("apache2", path=deployment.environment["PATH"]) is None:
        raise Missing("Apache is not installed: `make servers` installs it")
    modules = "\n".join(
        f"LoadModule {name}_module {web_servers.MODULES}/mod_{name}.so" for name in ("alias", "setenvif")
    )
    loads = (
        f"{modules}\nLoadModule wsgi_module {web_servers.mod_wsgi_module()}\nWSGISocketPrefix {deployment.root}/wsgi"
    )
    loads += '\nLogFormat "%h %l %u %t \\"%r\\" %>s %O" combined'
    main = web_servers.APACHE.format(directory=deployment.root, modules=web_servers.MODULES, more=loads)
    (deployment.root / "apache.conf").write_text(main)
    (deployment.root / "site.conf").symlink_to(deployment.path(site))
    return ["-f", str(deployment.root / "apache.conf"), "-DFOREGROUND"]


@contextlib.contextmanager
def owner(database_url: str) -> Iterator[str]:
    """Provide the address of the database, for a user with all rights in it and no others, like the tools."""
    url = sa.make_url(database_url)
    name, password = f"only_{url.database}", secrets.token_hex(8)
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")

    def execute(*statements: str) -> None:
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    execute(f"CREATE USER {name}@'%' IDENTIFIED BY '{password}'", f"GRANT ALL ON {url.database}.* TO {name}@'%'")
    yield f"{name}:{password}@{url.host}:{url.port}/{url.database}"
    execute(f"DROP USER {name}@'%'")


def _make_environment(place: Path) -> None:
    """Create a virtual environment with the packages of this one."""
    (place / "bin").mkdir(parents=True)
    if (prefix := Path(sys.prefix)) != Path(sys.base_prefix):
        shutil.copy(prefix / "pyvenv.cfg", place)
    for name in _PROGRAMS:
        if (program := Path(sys.executable).with_name(name)).exists():
            (place / "bin" / name).symlink_to(program)
    shutil.copy(ROOT / "bin" / "placement-api", place / "bin")
    libraries = place / "lib"
    libraries.mkdir()
    (libraries / f"python{sys.version_info[0]}.{sys.version_info[1]}").symlink_to(
        prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    )
    (libraries / "python3").symlink_to(f"python{sys.version_info[0]}.{sys.version_info[1]}")
