"""A private network of hosts: a Linux network namespace for each, and a switch whose cables can be pulled.

Programs learn the addresses of each other and connect freely; while a cable is pulled, its packets are lost in both
directions, without notice to either end, as in a partition.  A proxy could not do that for Galera, whose nodes exchange
their real addresses.

The namespaces have no names: they last as long as the processes in them, which end with the test run.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence

from tests import children
from tests.servers import Missing

#: The networks: one of the clients, which includes this process, and one between the hosts.
CLIENTS, GROUP = "clients", "group"
#: The first two bytes of the addresses, from the block that RFC 2544 reserves for tests; each run chooses the third.
_BLOCKS = {CLIENTS: "198.18", GROUP: "198.19"}
_HERE = 254
_PROGRAMS = ("ip", "nsenter", "unshare")


def check_installed() -> None:
    """Raise Missing if this process cannot create namespaces."""
    for program in _PROGRAMS:
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            raise Missing(f"{program} is not installed: `make servers` installs iproute2 and util-linux")
    trial = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    if trial.returncode:
        raise Missing(f"network namespaces need root with CAP_SYS_ADMIN and CAP_NET_ADMIN: {trial.stderr.strip()}")


class Namespace:
    """A network namespace, kept by a process that sleeps."""

    def __init__(self) -> None:
        log = children.run_directory() / "namespaces.log"
        self._sleeping = children.Child(["unshare", "--net", "sleep", "infinity"], log)
        self.pid = self._sleeping.pid
        own_namespace = os.readlink("/proc/self/ns/net")
        self._sleeping.wait_until(lambda: os.readlink(f"/proc/{self.pid}/ns/net") != own_namespace)

    def enter(self, identity: tuple[int, int] | None = None) -> list[str]:
        """Return the prefix of a command that runs it in the namespace, as this user and group."""
        user = [] if identity is None else [f"--setuid={identity[0]}", f"--setgid={identity[1]}"]
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *user]

    def configure(self, *commands: str) -> None:
        """Run commands of ip(8) in the namespace; raise RuntimeError if one fails."""
        _ip(commands, self.enter())

    def close(self) -> None:
        """Remove the namespace, with its interfaces, unless another process runs in it."""
        self._sleeping.kill()


class Host:
    """A host, with an ``address`` by network."""

    def __init__(self, number: int, block: int) -> None:
        self.number = number
        self.address = {network: f"{prefix}.{block}.{number + 1}" for network, prefix in _BLOCKS.items()}
        self.namespace = Namespace()
        self.namespace.configure("link set lo up")


class Network:
    """The hosts, and their connections."""

    def __init__(self, hosts: int) -> None:
        """Create the network; raise Missing if that is impossible."""
        check_installed()
        self._switch = Namespace()
        for network in _BLOCKS:
            self._switch.configure(f"link add name {network} type bridge", f"link set dev {network} up")
        block = self._connect()
        self.hosts = [Host(number, block) for number in range(hosts)]
        for host in self.hosts:
            self._plug_in(host)

    def close(self) -> None:
        """Remove everything."""
        for host in self.hosts:
            host.namespace.close()
        self._switch.close()

    @contextlib.contextmanager
    def cut(self, hosts: Sequence[Host], networks: Sequence[str] = (CLIENTS, GROUP)) -> Iterator[None]:
        """Pull the cables of these hosts to these networks during a block."""
        cables = [_cable(host, network) for host in hosts for network in networks]
        self._switch.configure(*(f"link set dev {cable} down" for cable in cables))
        try:
            yield
        finally:
            self._switch.configure(*(f"link set dev {cable} up" for cable in cables))

    def _connect(self) -> int:
        """Connect this process to the network of the clients, and return the third byte of the addresses."""
        while True:
            block = _free_block()
            name = f"placement{block}"
            try:
                _ip([f"link add name {name} type veth peer name here netns {self._switch.pid}"])
                break
            except RuntimeError:
                if all(interface != name for _, interface in socket.if_nameindex()):  # otherwise another run was faster
                    raise
        _ip([f"address add {_BLOCKS[CLIENTS]}.{block}.{_HERE}/24 dev {name}", f"link set dev {name} up"])
        self._switch.configure(f"link set dev here master {CLIENTS}", "link set dev here up")
        return block

    def _plug_in(self, host: Host) -> None:
        for network, address in host.address.items():
            cable = _cable(host, network)
            self._switch.configure(
                f"link add name {cable} type veth peer name {network} netns {host.namespace.pid}",
                f"link set dev {cable} master {network}",
                f"link set dev {cable} up",
            )
            host.namespace.configure(f"address add {address}/24 dev {network}", f"link set dev {network} up")


def _cable(host: Host, network: str) -> str:
    return f"{network}{host.number}"


def _free_block() -> int:
    """Return a third byte of addresses that is unique to this run."""
    used_blocks = {
        int(name.removeprefix("placement")) for _, name in socket.if_nameindex() if name.startswith("placement")
    }
    return random.choice([block for block in range(256) if block not in used_blocks])


def _ip(commands: Sequence[str], prefix: Sequence[str] = ()) -> None:
    argv = [*prefix, "ip", "-batch", "-"]
    completed = subprocess.run(argv, input="\n".join(commands), capture_output=True, text=True)
    if completed.returncode:
        raise RuntimeError(f"{commands!r} failed:\n{completed.stdout}{completed.stderr}")
