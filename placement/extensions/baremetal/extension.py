"""Options, routes, commands, tables and metrics that the Bare Metal API adds to the service."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg

from placement.db.database import Database
from placement.db.schema.schema import Addition
from placement.db.upkeep.sweep import Swept
from placement.extension import Extension
from placement.http.api import Api

if TYPE_CHECKING:
    from placement.metrics.instruments import Instruments, Subscription

_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Serve the Bare Metal API below /baremetal: records of machines and their allocations, made by claims in "
        "this service, for clients of OpenStack Ironic. It controls no hardware.",
    ),
    cfg.ListOpt(
        "drivers",
        default=["fake-hardware", "idrac", "ilo", "ilo5", "ipmi", "irmc", "manual-management", "redfish", "snmp"],
        help="Driver names accepted for nodes. The service only records them; it contains no drivers.",
    ),
]

_VERSION = "X-OpenStack-Ironic-API-Version"
_VERSIONS = "X-OpenStack-Ironic-API-Minimum-Version", "X-OpenStack-Ironic-API-Maximum-Version"

_GREETING = """\
The Bare Metal API of OpenStack Ironic is at {url}/baremetal.  Try:

  openstack --os-auth-type admin_token --os-token admin --os-endpoint {url}/baremetal baremetal driver list

"""


def _api() -> Api:
    from placement.extensions.baremetal.api import BAREMETAL

    return BAREMETAL


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from placement.extensions.baremetal import command

    command.add_commands(commands)


def _metrics(instruments: Instruments) -> Iterable[Subscription]:
    from placement.extensions.baremetal import metrics

    return metrics.subscriptions(instruments)


def _schema() -> Addition:
    from placement.extensions.baremetal.schema import ADDITION

    return ADDITION


def _sweep(database: Database) -> Sequence[Swept]:
    from placement.extensions.baremetal import schema

    return schema.remove_ended_records(database)


def _greeting(conf: cfg.ConfigOpts, url: str) -> str:
    return _GREETING.format(url=url) if conf.baremetal.enabled and conf.api.auth_strategy == "noauth2" else ""


EXTENSION = Extension(
    name="baremetal",
    options={"baremetal": _OPTIONS},
    cors={"allow_headers": (_VERSION,), "expose_headers": (_VERSION, *_VERSIONS)},
    api=_api,
    commands=_add_commands,
    metrics=_metrics,
    schema=_schema,
    swept=_sweep,
    greeting=_greeting,
)
