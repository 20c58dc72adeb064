"""The tests that run the blocks of the pages, and the blocks that are only checked, each with the reason.

Each block of commands, configuration or code matches one of two tables; a block ``text`` is output or a picture.
"""

from __future__ import annotations

import configparser
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tests.docs.blocks import PAGES, ROOT, Block, blocks


class Runs(NamedTuple):
    """Blocks that a test runs completely: of this kind, on these pages, with this text."""

    kind: str
    pages: str
    test: str
    text: str = ""

    def matches(self, page: str, block: Block) -> bool:
        """Whether this entry matches the block."""
        return fnmatch(block.kind, self.kind) and fnmatch(page, self.pages) and self.text in block.text


class Checked(NamedTuple):
    """Blocks of a kind that are only checked (tests/docs/checks.py), and the reason."""

    kind: str
    pages: str
    reason: str
    text: str = ""

    matches = Runs.matches


_LIVE_PAGES, _LIVE_EXTENSION_PAGES = "tests/live/test_pages.py", "tests/live/extensions/test_pages.py"
_IMAGE, _COMPOSE = "tests/live/containers/test_image.py", "tests/live/containers/test_compose.py"
_TOOL = "the tool is not installed; tests/live/test_deployments.py runs what it configures"

RUN = (
    Runs("http", "docs/api/*", "tests/docs/test_examples.py"),
    Runs("http", "docs/extensions/explain.rst", "tests/docs/test_examples.py"),
    Runs("http", "docs/extensions/batch.rst", "tests/docs/test_batch.py"),
    Runs("http", "docs/runbooks.rst", "tests/live/extensions/test_runbooks.py"),
    Runs("console", "docs/runbooks.rst", "tests/live/extensions/test_runbooks.py"),
    Runs("console", "docs/extensions/orphans.rst", "tests/live/extensions/test_runbooks.py"),
    Runs("json", "docs/api/generated/*", "tests/docs/test_generated.py"),
    Runs("python", "docs/testing-other-projects.rst", "tests/docs/test_blocks.py"),
    *(
        Runs(kind, "docs/architecture.rst", "tests/unit/test_extension_example.py")
        for kind in ("hello.py", "pyproject.toml", "http")
    ),
    *(
        Runs(kind, "docs/whole-extension.rst", "tests/live/extensions/test_whole_extension.py")
        for kind in ("placement_notes/*.py", "pyproject.toml", "test_notes.py", "http", "console", "text")
    ),
    *(
        Runs(kind, "docs/tutorial.rst", "tests/live/extensions/test_tutorial.py")
        for kind in ("book.py", "gpus.yaml", "console")
    ),
    Runs("shell", "docs/tutorial.rst", "tests/live/extensions/test_tutorial.py", "make "),
    *(Runs(kind, "docs/questions.rst", "tests/live/extensions/test_questions.py") for kind in ("console", "shell")),
    *(
        Runs(kind, "docs/extensions/batch.rst", "tests/live/extensions/test_batch_controller.py")
        for kind in ("controller.py", "cluster.yaml", "console")
    ),
    Runs("python", "docs/client.rst", "tests/live/test_keystone.py", "keystoneauth1"),
    *(
        Runs(kind, "docs/client.rst", "tests/live/extensions/test_client_page.py")
        for kind in ("python", "main.go", "console")
    ),
    Runs("python", "client/README.rst", "tests/live/extensions/test_client_page.py"),
    Runs("alerts.yml", "docs/observability.rst", "tests/live/extensions/test_dashboard.py"),
    Runs("postgresql.conf", "docs/backup.rst", "tests/live/test_restores.py"),
    Runs("shell", "docs/backup.rst", _LIVE_PAGES, "db restored"),
    Runs("shell", "docs/backup.rst", "tests/live/test_restores.py"),
    Runs("MariaDB", "docs/*", "tests/live/test_blocks.py"),
    Runs("PostgreSQL", "docs/*", "tests/live/test_blocks.py"),
    Runs("console", "README.rst", "tests/live/test_readme.py"),
    Runs("shell", "README.rst", "tests/live/test_readme.py", "make "),
    Runs("shell", "README.rst", "tests/live/test_readme.py", "pip install"),
    Runs("shell", "README.rst", "tests/live/test_readme.py", "uwsgi --http-socket"),
    Runs("ini", "README.rst", "tests/live/test_readme.py"),
    # Configuration
    Runs("shell", "docs/configuration.rst", _LIVE_PAGES, "oslo-config-generator"),
    Runs("ini", "docs/configuration.rst", "tests/live/test_keystone.py", "[keystone_authtoken]"),
    Runs("ini", "docs/configuration.rst", "tests/live/test_http_basic.py", "http_basic"),
    Runs("nova.conf", "docs/configuration.rst", "tests/live/test_http_basic.py"),
    Runs("shell", "docs/configuration.rst", "tests/live/test_http_basic.py", "export"),
    Runs("ini", "docs/configuration.rst", "tests/db/test_health.py", "[healthcheck]"),
    Runs("ini", "docs/observability.rst", _LIVE_PAGES),
    Runs("ini", "docs/extensions/console.rst", _LIVE_EXTENSION_PAGES),
    Runs("ini", "docs/extensions/baremetal.rst", _LIVE_EXTENSION_PAGES),
    Runs("policy.yaml", "docs/policy.rst", _LIVE_PAGES),
    Runs("shell", "docs/policy.rst", _LIVE_PAGES),
    # Operation
    Runs("ini", "docs/deployment.rst", "tests/db/db/engine/test_tls.py", "ca.pem"),
    Runs("ini", "docs/deployment.rst", _LIVE_PAGES, "target_session_attrs"),
    Runs("shell", "docs/deployment.rst", _LIVE_PAGES, "cp etc/"),
    Runs("shell", "docs/deployment.rst", "tests/live/test_web_servers.py", "uwsgi.fifo"),
    Runs("shell", "docs/deployment.rst", "tests/live/test_web_servers.py", "pkill"),
    Runs("shell", "docs/deployment.rst", "tests/live/test_load_balancer.py", "socat"),
    Runs("mariadb.cnf", "docs/deployment.rst", "tests/galera_network.py"),
    Runs("/etc/cron.d/placement", "docs/deployment.rst", _LIVE_PAGES),
    Runs("/etc/cron.d/placement", "docs/observability.rst", _LIVE_EXTENSION_PAGES),
    Runs("shell", "docs/observability.rst", "tests/live/test_metrics.py", "placement-metrics"),
    Runs("*/traces.conf", "docs/observability.rst", "tests/live/test_traces.py"),
    Runs("text", "docs/observability.rst", "tests/live/test_traces.py", "trace_id: "),
    Runs("text", "docs/observability.rst", "tests/live/test_traces.py", "PUT /allocations/{consumer_uuid}\n"),
    Runs("shell", "docs/install.rst", "tests/live/test_readme.py", "pip install"),
    Runs("shell", "docs/install.rst", _LIVE_PAGES, "runuser"),
    Runs("shell", "docs/keystone.rst", "tests/live/test_keystone.py"),
    Runs("ini", "docs/keystone.rst", "tests/live/test_keystone.py"),
    Runs("shell", "docs/upgrade.rst", "tests/live/test_comparing.py"),
    # Containers
    *(
        Runs("console", "docs/containers.rst", _COMPOSE, text)
        for text in ("openssl", "source ./.env", "podman-compose down")
    ),
    Runs("console", "docs/containers.rst", _IMAGE),
    Runs("text", "docs/containers.rst", _IMAGE, "Placement serves"),
    Runs("placement.conf", "docs/containers.rst", _IMAGE),
    Runs("kustomization.yaml", "docs/containers.rst", "tests/live/containers/test_kustomize.py"),
    Runs("placement.env", "docs/containers.rst", "tests/unit/test_kubernetes.py"),
    Runs("shell", "docs/swap/debian.rst", "tests/live/test_deployments.py", "sed -i.original"),
    # Extensions
    Runs("console", "docs/extensions/ask.rst", _LIVE_EXTENSION_PAGES),
    Runs("shell", "docs/extensions/ask.rst", "tests/live/extensions/test_ask_completion.py", "--print-completion"),
    Runs("shell", "docs/extensions/ask.rst", _LIVE_EXTENSION_PAGES),
    Runs("console", "docs/extensions/doctor.rst", _LIVE_EXTENSION_PAGES),
    Runs("yaml", "docs/extensions/load.rst", _LIVE_EXTENSION_PAGES),
    Runs("console", "docs/api/baremetal/protocol.rst", _LIVE_EXTENSION_PAGES),
    Runs("shell", "docs/extensions/baremetal.rst", "tests/live/test_keystone.py", "openstack service"),
    Runs("shell", "docs/extensions/baremetal.rst", _LIVE_EXTENSION_PAGES, "export OS_AUTH_TYPE"),
    Runs("clouds.yaml", "docs/extensions/baremetal.rst", _LIVE_EXTENSION_PAGES),
    Runs(
        "shell", "docs/extensions/baremetal.rst", "tests/live/extensions/test_baremetal_import.py", "baremetal import"
    ),
    # Output that is compared
    Runs("text", "docs/extensions/baremetal.rst", "tests/live/extensions/test_baremetal_import.py", "| "),
    Runs("text", "docs/extensions/load.rst", _LIVE_EXTENSION_PAGES),
    Runs("text", "docs/observability.rst", _LIVE_PAGES),
    Runs("text", "docs/upgrade.rst", "tests/live/test_comparing.py"),
)

_CLIENT = "the environments of the tests include the client"

CHECKED = (
    Checked("shell", "CONTRIBUTING.rst", "these are the gates; one of them runs this test"),
    Checked("shell", "client/README.rst", _CLIENT, "pip install"),
    Checked("shell", "docs/client.rst", _CLIENT, "pip install"),
    Checked("shell", "docs/tutorial.rst", _CLIENT, "pip install"),
    Checked("shell", "docs/install.rst", "it creates a system user", "useradd"),
    Checked(
        "shell", "docs/configuration.rst", "htpasswd is one of Apache's tools, and prompts for a password", "htpasswd"
    ),
    Checked("shell", "docs/testing-other-projects.rst", "it changes the environment of another project", "pip "),
    Checked("shell", "docs/testing-other-projects.rst", "nova's own tests take minutes", "make test-nova"),
    Checked(
        "shell", "docs/containers.rst", "there is no cluster; kustomize is run, and the names are compared", "kubectl"
    ),
    Checked("prometheus.yml", "docs/observability.rst", "no Prometheus is installed; the port is compared"),
    Checked(
        "/etc/placement/uwsgi.ini",
        "docs/observability.rst",
        "it is a comment of the sample, which a test runs",
        "-metrics",
    ),
    Checked("*", "docs/swap/kolla.rst", _TOOL),
    Checked("*", "docs/swap/openstack-ansible.rst", _TOOL),
    Checked("*", "docs/swap/openstack-helm.rst", _TOOL),
    Checked("shell", "docs/swap/debian.rst", "it changes the packages of the system", "apt-mark"),
    Checked("shell", "docs/swap/debian.rst", "it needs systemd; its other commands are run", "runuser"),
    Checked("shell", "docs/swap.rst", "the package is in no index yet", "pip "),
    Checked("shell", "docs/swap.rst", "it queries a deployment; tests/live/test_deployments.py runs the first query"),
    Checked("/etc/logrotate.d/placement", "docs/deployment.rst", "logrotate depends on cron or systemd"),
)


def blocks_of(file: str, page: str, kind: str = "*", text: str = "") -> list[Block]:
    """Return the blocks of a page that the test in this file runs, of this kind and with this text."""
    test = str(Path(file).relative_to(ROOT))
    own_blocks = (block for block in blocks(PAGES[page]) if (entry := run_by(page, block)) and entry.test == test)
    return [block for block in own_blocks if fnmatch(block.kind, kind) and text in block.text]


def options_of(block: Block) -> dict[str, dict[str, str]]:
    """Return the options of a block of configuration, by section."""
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(block.text)
    return {section: dict(parser[section]) for section in parser.sections()}


def run_by(page: str, block: Block) -> Runs | None:
    """Return the first entry that matches this block, or None."""
    return next((runs for runs in RUN if runs.matches(page, block)), None)


def checked_for(page: str, block: Block) -> Checked | None:
    """Return the first entry that matches this block, or None."""
    return next((checked for checked in CHECKED if checked.matches(page, block)), None)
