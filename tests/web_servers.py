"""The service under the web servers of operators, each configured by its sample in etc/ with other paths.

They run as an unprivileged user, on free ports of 127.0.0.1, and each writes to its own directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests import children, running
from tests.running import Options, Service
from tests.servers import Missing

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "etc"
#: The main configuration; the packaged one of Debian includes the sites in the same way.
APACHE = """\
ServerRoot {directory}
ServerName localhost
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}
Mutex file:{directory}
ErrorLog {directory}/error.log
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
{more}
Include {directory}/site.conf
"""
NOBODY = NOGROUP = 65534
MODULES = Path("/usr/lib/apache2/modules")


@contextlib.contextmanager
def uwsgi(
    database_url: str, options: Options | None = None, processes: int = 2, *, environment: Mapping[str, str] = {}
) -> Iterator[Service]:
    """The service under uWSGI by etc/uwsgi/placement.ini, over HTTP.  Raise Missing if uWSGI is not installed."""
    yield from running.run(*uwsgi_command(database_url, options, processes), environment=environment)


def uwsgi_command(database_url: str, options: Options | None = None, processes: int = 2) -> tuple[list[str], int, Path]:
    """Return the command that starts uWSGI with etc/uwsgi/placement.ini, its port and its directory.

    Raises:
        Missing: uWSGI is not installed.
    """
    binary, port, directory = (
        running.uwsgi_binary(),
        children.free_port(),
        running.write_configuration(database_url, options),
    )
    home, paths = _python()
    sample = fill_sample(
        "uwsgi/placement.ini",
        {
            "virtualenv = /opt/placement": "\npythonpath = ".join([f"virtualenv = {home}", *paths]),
            "binary-path = /opt/placement/bin/python": f"binary-path = {sys.executable}",
            "127.0.0.1:8778": f"127.0.0.1:{port}",
            "/run/placement": str(directory),
            "processes = 4": f"processes = {processes}",
        },
    )
    (directory / "placement.ini").write_text(sample)
    return [*unprivileged_prefix(), binary, "--ini", str(directory / "placement.ini")], port, directory


@contextlib.contextmanager
def mod_wsgi(
    database_url: str,
    options: Options | None = None,
    processes: int = 2,
    script: Path = ROOT / "placement" / "wsgi" / "api.py",
    environment: Mapping[str, str] = {},
) -> Iterator[Service]:
    """The service under Apache by etc/apache2/placement-mod-wsgi.conf.  Raise Missing if Apache is not installed."""
    module, port, directory = (
        mod_wsgi_module(),
        children.free_port(),
        running.write_configuration(database_url, options),
    )
    home, paths = _python()
    packages = "/opt/placement/lib/python3.11/site-packages/placement/wsgi"
    sample = fill_sample(
        "apache2/placement-mod-wsgi.conf",
        {
            "Listen 8778": f"Listen 127.0.0.1:{port}",
            "*:8778": f"127.0.0.1:{port}",
            f"{packages}/api.py": str(script),
            packages: str(script.parent),
            "python-home=/opt/placement": f"python-home={home} python-path={':'.join(paths)}",
            "user=placement group=placement": f"user=#{os.geteuid() or NOBODY} group=#{os.getegid() or NOGROUP}",
            "processes=4": f"processes={processes}",
        },
    )
    loads = f"LoadModule reqtimeout_module {MODULES}/mod_reqtimeout.so\n"
    loads += f"LoadModule wsgi_module {module}\nWSGISocketPrefix {directory}/wsgi"
    yield from _apache(sample, loads, port, directory, environment)


@contextlib.contextmanager
def mod_proxy_uwsgi(behind: Service) -> Iterator[Service]:
    """Apache before uWSGI by etc/apache2/placement-mod-proxy-uwsgi.conf.  Raise Missing if one is not installed."""
    port, directory = children.free_port(), children.run_directory() / f"apache-{secrets.token_hex(4)}"
    directory.mkdir()
    sample = fill_sample(
        "apache2/placement-mod-proxy-uwsgi.conf",
        {
            "Listen 8778": f"Listen 127.0.0.1:{port}",
            "*:8778": f"127.0.0.1:{port}",
            "/run/placement": str(behind.directory),
        },
    )
    modules = ("alias", "proxy", "proxy_uwsgi", "reqtimeout")
    loads = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in modules)
    yield from _apache(sample, loads, port, directory)


@contextlib.contextmanager
def haproxy(
    behind: Service, other: Service | None = None, *, secured: tuple[int, Path] | None = None
) -> Iterator[Service]:
    """haproxy in front of one or two services by etc/haproxy/placement.cfg.

    Args:
        behind: The first service.
        other: The second service, if any.
        secured: An additional port with TLS, and the file of its certificate and key.

    Raises:
        Missing: haproxy is not installed.
    """
    port, directory = children.free_port(), children.run_directory() / f"haproxy-{secrets.token_hex(4)}"
    directory.mkdir()
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOGROUP)
    second = "    server controller2 192.0.2.12:8778 check\n"
    changes = {
        "    user haproxy\n    group haproxy\n": "",
        "/run/haproxy": str(directory),
        "bind :8778\n": f"bind 127.0.0.1:{port}\n",
        # A service of the tests may wait for a processor.
        "    timeout queue 60s\n": "    timeout queue 60s\n    timeout check 10s\n",
        "server controller1 192.0.2.11:8778": f"server controller1 127.0.0.1:{behind.port}",
        second: second.replace("192.0.2.12:8778", f"127.0.0.1:{other.port}") if other else "",
    }
    configuration = directory / "haproxy.cfg"
    configuration.write_text(fill_sample("haproxy/placement.cfg", changes))
    if secured is not None:
        configuration.write_text(with_tls(configuration.read_text(), *secured))
    # A master with a worker and a socket, like Debian's unit.
    argv = [
        *unprivileged_prefix(),
        haproxy_binary(),
        "-W",
        "-S",
        str(directory / "master.sock"),
        "-f",
        str(configuration),
    ]
    yield from running.run(argv, port, directory)


def haproxy_binary() -> str:
    """Return the path of haproxy; raise Missing if it is not installed."""
    binary = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        raise Missing("haproxy is not installed: `make servers` installs it")
    return binary


def with_tls(configuration: str, port: int, certificate: Path) -> str:
    """Return a configuration of haproxy with the TLS settings of the sample's comment, on an additional port."""
    words = re.search(r"# With TLS: bind :8778 (.+)\n +# +(.+)\n", configuration)
    assert words is not None
    lines = f"    bind 127.0.0.1:{port} {words[1]}\n    {words[2]}\n".replace(
        "/etc/haproxy/placement.pem", str(certificate)
    )
    return configuration.replace("    option forwardfor\n", f"{lines}    option forwardfor\n")


def fill_sample(sample: str, changes: Mapping[str, str]) -> str:
    """Return a sample with texts replaced; it must contain each text."""
    text = (SAMPLES / sample).read_text()
    for old, new in changes.items():
        assert old in text, f"{sample} has no {old!r}"
        text = text.replace(old, new)
    return text


def _apache(
    site: str, loads: str, port: int, directory: Path, environment: Mapping[str, str] = {}
) -> Iterator[Service]:
    binary = shutil.which("apache2", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        raise Missing("Apache is not installed: `make servers` installs it")
    (directory / "site.conf").write_text(site)
    (directory / "apache.conf").write_text(APACHE.format(directory=directory, modules=MODULES, more=loads))
    argv = [*unprivileged_prefix(), binary, "-f", str(directory / "apache.conf"), "-DFOREGROUND"]
    variables = {"APACHE_LOG_DIR": str(directory), **environment}
    yield from running.run(argv, port, directory, prefix="/placement", environment=variables)


def unprivileged_prefix() -> list[str]:
    """Return the prefix of a command that drops root.

    It keeps the capability to read all files: Python, or these tests, may be in root's home.
    """
    if os.geteuid() != 0:
        return []
    return [
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOGROUP}", "--clear-groups"),
        *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
    ]


@functools.cache
def package_root() -> Path:
    """Return a directory with the package and the tests, whose files the unprivileged user finds even by access().

    access(), which alembic calls, ignores the capability.  So if these files are below a directory closed to other
    users, such as root's home, the directory of the run contains a copy.
    """
    if _is_open(ROOT):
        return ROOT
    copy = children.run_directory() / f"package-{secrets.token_hex(4)}"
    for name in ("placement", "tests"):
        shutil.copytree(ROOT / name, copy / name)
    return copy


def _is_open(path: Path) -> bool:
    """Return whether the unprivileged user can enter a directory without the capability."""
    return os.geteuid() != 0 or all(directory.stat().st_mode & 0o001 for directory in (path, *path.parents))


def _python() -> tuple[str, list[str]]:
    """Return the home of an embedded Python, and the paths of the service and its requirements."""
    if _is_open(Path(sys.prefix)):
        return sys.prefix, [str(package_root())]
    # Python checks for a virtual environment by access(), too.
    return sys.base_prefix, [str(package_root()), sysconfig.get_path("purelib")]


def python_paths() -> list[str]:
    """Return the additional directories in which an embedded Python finds the service and its requirements."""
    return _python()[1]


def mod_wsgi_module() -> Path:
    """Return the mod_wsgi of this Python; raise Missing if it is not installed."""
    for module in Path(sysconfig.get_path("platlib")).glob("mod_wsgi/server/mod_wsgi-py*.so"):
        return module
    # The package of Debian, if its Python has the same version.
    module = MODULES / "mod_wsgi.so-{}.{}".format(*sys.version_info)
    if module.exists():
        return module
    raise Missing(
        "mod_wsgi is not installed: `pip install mod_wsgi` compiles it; `make servers` installs the requirements"
    )
