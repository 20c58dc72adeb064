"""The services of a cluster, under uWSGI with several workers and threads, as docs/deployment.rst describes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jepsen.clusters.cluster import Cluster
from tests import children, running
from tests.running import Service

WORKERS, THREADS = 2, 4


@contextmanager
def service(cluster: Cluster, database_url: str) -> Iterator[Service]:
    """Run a service with the cluster's options, module and environment; raise servers.Missing if uWSGI is missing.

    Other options, including timeouts, keep their defaults, so that clients see the behavior of a deployment.
    """
    flags = ("--lazy-apps", "--enable-threads", "--threads", str(THREADS))
    with running.uwsgi(
        *(database_url, WORKERS, _options(cluster)),
        module=cluster.module,
        flags=flags,
        environment=cluster.environment,
        tree=cluster.tree or running.ROOT,
    ) as started:
        started.wait_until_loaded()
        yield started


def _options(cluster: Cluster) -> Mapping[str, Mapping[str, Any]]:
    metrics = children.run_directory() / f"metrics-{secrets.token_hex(4)}"
    options: dict[str, Mapping[str, Any]] = {"metrics": {"directory": metrics}, "baremetal": {"enabled": True}}
    for section, values in cluster.options.items():
        options[section] = {**options.get(section, {}), **values}
    return options
