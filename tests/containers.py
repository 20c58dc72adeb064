"""Containers of the tests, on images that they build from Debian's packages: no registry is needed.

Their engine, podman, runs in its own namespaces for mounts, processes and network: all ports and names are free there,
and all containers end with the run.  Its images and data are in the directory of the run.
"""

from __future__ import annotations

import configparser
import contextlib
import ctypes
import functools
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from tests import children
from tests.docs.blocks import ROOT
from tests.servers import Missing

SUITE, MIRROR = "trixie", "http://deb.debian.org/debian"
BASE, IMAGE = f"localhost/debian:{SUITE}", "localhost/placement"
#: Replacements for the images of other projects in compose.yaml, by service; and images for tests alone.
OTHERS = ROOT / "tests/live/containers/images"
_PROGRAMS = ("curl", "debootstrap", "git", "iptables", "make", "nsenter", "openssl", "podman", "runc", "unshare")
_NAMESPACES = ("--mount", "--pid", "--net", "--fork", "--mount-proc")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
#: Paths omitted from the base, as in Debian's slim image.
_DOCUMENTS = ("doc", "info", "lintian", "locale", "man")
_APT = 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\nBinary::apt::APT::Keep-Downloaded-Packages "false";\n'
_CLEAN = 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };\n'
#: The path of the engine's directory in its namespaces: podman refuses paths of more than 50 characters.
_HOME = "/mnt"
_NETWORK = 0x40000000  # CLONE_NEWNET
#: Maximum seconds of a command; the build of an image is the longest.  A test of 1200 seconds ends the run.
_LONGEST = 900


def check_installed() -> None:
    """Raise Missing if a program is missing, or the right to run containers."""
    for program in _PROGRAMS:
        if shutil.which(program, path=_PATH) is None:
            raise Missing(f"{program} is not installed: `make servers` installs the programs for containers")
    trial = subprocess.run(["unshare", *_NAMESPACES, "true"], capture_output=True, text=True)
    if trial.returncode:
        raise Missing(f"containers need root with CAP_SYS_ADMIN: {trial.stderr.strip()}")


class Engine:
    """podman, isolated from any other podman of this machine."""

    def __init__(self, directory: Path) -> None:
        """Start the namespaces; raise Missing if that is impossible."""
        check_installed()
        self.directory = directory
        directory.mkdir()
        self._environment = _write_configuration(directory)
        # The first process of the namespace adopts orphans, and bash reaps them.
        argv = ["unshare", *_NAMESPACES, "--kill-child", "bash"]
        self._namespace_holder = children.Child([*argv, "-c", "sleep infinity & wait"], directory / "namespaces.log")
        self._namespace_holder.wait_until(lambda: len(children.descendants(self._namespace_holder.pid)) == 2)
        self.pid = children.descendants(self._namespace_holder.pid)[0]
        self.run(["mount", "--bind", str(directory), _HOME])
        # podman keeps these at fixed paths, for all engines of a machine, even killed ones.
        for place in ("/run/containers", "/run/netns", "/var/lib/containers"):
            self.run(["sh", "-c", f"mkdir -p {place} && mount -t tmpfs tmpfs {place}"])
        self.run(["ip", "link", "set", "lo", "up"])

    def close(self) -> None:
        """End all containers and remove all images."""
        self.podman("rm", "--all", "--force", "--time", "0", check=False)  # their control groups belong to the machine
        self._namespace_holder.kill()
        shutil.rmtree(self.directory)

    def run(
        self,
        argv: list[str],
        *,
        check: bool = True,
        outside: bool = False,
        cwd: Path = ROOT,
        environment: Mapping[str, str] = {},
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the namespaces, and return its output.

        Args:
            outside: The command is in the network of this machine instead, to reach the mirrors of packages.
        """
        namespaces = ["--mount", "--pid", *([] if outside else ["--net"])]
        # A directory entered from outside has no path inside.
        inside = ["sh", "-c", 'cd "$0" && exec "$@"', str(cwd), *argv]
        completed = subprocess.run(
            ["nsenter", f"--target={self.pid}", *namespaces, *inside],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            env={**self._environment, **environment},
        )
        assert completed.returncode == 0 or not check, f"{argv!r} failed:\n{completed.stdout}{completed.stderr[-4000:]}"
        return completed

    def podman(self, *words: str, check: bool = True) -> str:
        """Run podman with arguments, and return its output."""
        return self.run(["podman", *words], check=check).stdout.strip()

    def log(self, container: str) -> str:
        """Return the output of a container."""
        completed = self.run(["podman", "logs", container])
        return completed.stdout + completed.stderr

    def is_running(self, container: str) -> bool:
        return self.podman("inspect", "--format", "{{.State.Running}}", container) == "true"

    def exit_code(self, container: str) -> int:
        """Return the exit code of a container that ends by itself."""
        children.until(lambda: not self.is_running(container), f"{container} runs")
        return int(self.podman("inspect", "--format", "{{.State.ExitCode}}", container))

    @contextlib.contextmanager
    def health_checks(self) -> Iterator[None]:
        """Run health checks every second during a block; by default systemd runs them, if present."""
        stopping = threading.Event()

        def check() -> None:
            while not stopping.wait(1):
                for container in self.podman("ps", "--quiet", check=False).split():
                    self.run(["podman", "healthcheck", "run", container], check=False)

        thread = threading.Thread(target=check)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def remove(self, *containers: str) -> None:
        """Remove these containers, as far as they exist, with their anonymous volumes."""
        for container in containers:  # podman removes none of several if one does not exist
            self.podman("rm", "--force", "--volumes", "--time", "0", container)

    @contextlib.contextmanager
    def container(self, name: str, *words: str) -> Iterator[None]:
        """Run a container, started by `podman run` with these arguments, during a block."""
        try:
            self.podman("run", "--detach", "--name", name, *words)
            yield
        finally:
            self.remove(name)

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Move this thread, and the threads that it starts, to the network of published ports during a block."""
        with open("/proc/thread-self/ns/net") as own_network, open(f"/proc/{self.pid}/ns/net") as engine_network:
            _enter(engine_network.fileno())
            try:
                yield
            finally:
                _enter(own_network.fileno())

    def build(self) -> None:
        """Build the image of the service, and the others; raise Missing if that is impossible."""
        self._make_base()
        # Without separate namespaces for each step, and with the network of this machine.
        common = ["--isolation=chroot", "--network=host", f"--build-arg=BASE={BASE}"]
        services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
        images = {
            services.get(directory.name, {}).get("image", f"localhost/{directory.name}"): directory
            for directory in OTHERS.iterdir()
        }
        with ThreadPoolExecutor() as executor:
            service_image = executor.submit(self._make_image, common)
            for name, directory in images.items():
                self.run(["podman", "build", *common, f"--tag={name}", str(directory)], outside=True)
            service_image.result()

    def _make_image(self, arguments: list[str]) -> None:
        volumes = pip_configuration(self.directory / "pip.conf")
        completed = self.run(["make", "image", f"ARGS={' '.join(arguments + volumes)}"], outside=True, check=False)
        if "Failed to establish a new connection" in completed.stderr:
            raise Missing("no package index is reachable for pip, which installs the packages of the image")
        assert completed.returncode == 0, f"{completed.stdout}{completed.stderr[-4000:]}"

    def _make_base(self) -> None:
        """Build an image of Debian, as slim as Debian's; raise Missing if containers cannot run here."""
        system = self.directory / "debian"
        debootstrap = self.run(
            ["debootstrap", "--variant=minbase", SUITE, str(system), MIRROR], outside=True, check=False, cwd=Path("/")
        )
        if debootstrap.returncode:
            raise Missing(f"debootstrap cannot make a Debian here: {(debootstrap.stdout + debootstrap.stderr)[-400:]}")
        excluded = [f"path-exclude /usr/share/{name}/*\n" for name in _DOCUMENTS]
        (system / "etc/dpkg/dpkg.cfg.d/slim").write_text("".join(excluded))
        (system / "etc/apt/apt.conf.d/slim").write_text(_APT + _CLEAN)
        for place in (*(f"usr/share/{name}" for name in _DOCUMENTS), "var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(system / place, ignore_errors=True)
        self.run(["sh", "-c", f"tar -C {system} -c . | podman import - {BASE}"])
        shutil.rmtree(system)
        trial = self.run(["podman", "run", "--rm", BASE, "true"], check=False)
        if trial.returncode:
            raise Missing(f"podman cannot run containers here: {trial.stderr.strip()}")


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _enter(namespace: int) -> None:
    """Move this thread to a network; Python 3.11 lacks os.setns()."""
    if _libc().setns(namespace, _NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def _write_configuration(directory: Path) -> dict[str, str]:
    """Write the configuration of podman; return the environment with which its commands use it."""
    limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] for name in ("nofile", "nproc")}
    # podman's own limits may be higher than the limits of this process, which may be unable to raise them.
    ulimits = [f"{name}={hard}:{hard}" for name, hard in limits.items() if hard != resource.RLIM_INFINITY]
    (directory / "containers.conf").write_text(f"""\
[containers]
default_ulimits = {ulimits}
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
tmp_dir = "{_HOME}/run/libpod"
volume_path = "{_HOME}/volumes"
[network]
network_backend = "netavark"
network_config_dir = "{_HOME}/networks"
""")
    (directory / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{_HOME}/storage"\nrunroot = "{_HOME}/run/storage"\n'
    )
    return {
        **os.environ,
        "PATH": _PATH,
        "CONTAINERS_CONF": f"{_HOME}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{_HOME}/storage.conf",
        # The timers of this machine's systemd would be outside of the namespaces.
        "DISABLE_HC_SYSTEMD": "true",
    }


def pip_configuration(file: Path) -> list[str]:
    """Copy this machine's configuration of pip for the pip of a build; return podman's options for it.

    Files and directories named in it are below /host in the build.
    """
    parser = configparser.RawConfigParser()
    home = Path.home()
    parser.read([
        *("/etc/xdg/pip/pip.conf", "/etc/pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf"),
        os.environ.get("PIP_CONFIG_FILE", ""),
    ])  # fmt: skip
    options = dict(parser["global"]) if parser.has_section("global") else {}
    for name, value in os.environ.items():
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE":
            options[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    volumes = {f"{file}:/etc/pip.conf:ro"}
    for option, value in options.items():
        words = value.split()
        for place, word in enumerate(words):
            scheme, path = ("file://", word.removeprefix("file://")) if word.startswith("file://") else ("", word)
            if path.startswith("/") and os.path.exists(path):
                words[place] = f"{scheme}/host{path}"
                # The pages of a file index link to files beside it.
                shared = os.path.dirname(path.rstrip("/")) if scheme else path
                volumes.add(f"{shared}:/host{shared}:ro")
        options[option] = " ".join(words)
    lines = "".join(f"{name} = {value}\n" for name, value in options.items())
    file.write_text(f"[global]\n{lines}")
    return [f"--volume={volume}" for volume in sorted(volumes)]
