"""The table of all checks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable

from placement import extension
from placement.checks import configuration, over_commitment
from placement.checks.check import Check
from placement.extension import Extension
from placement.extensions.doctor import data, database, feed, files, rows, server, trees

CONFIGURATION, DATABASE, DATA = "configuration", "database", "data"

CHECKS: tuple[Check, ...] = (
    Check("options", configuration.unknown_options, CONFIGURATION, needs_tables=False),
    Check("policy", configuration.policy_mistakes, CONFIGURATION, needs_tables=False),
    Check("policy_format", configuration.policy_in_json, CONFIGURATION, needs_tables=False),
    Check("keystone", configuration.identity_service, CONFIGURATION, needs_tables=False),
    Check("metrics_directory", files.metrics_directory, CONFIGURATION, needs_tables=False),
    Check("secrets", files.secrets, CONFIGURATION, needs_tables=False),
    Check("revision", database.revision, DATABASE, needs_tables=False),
    Check("isolation", database.isolation, DATABASE, needs_tables=False),
    Check("engine", database.engine_of_tables, DATABASE, needs_tables=False),
    Check("galera", server.galera, DATABASE, needs_tables=False),
    Check("clock", server.clock, DATABASE, needs_tables=False),
    Check("connections", server.connections, DATABASE, needs_tables=False),
    Check("foreign_keys", database.foreign_keys, DATABASE),
    Check("standard_rows", database.standard_rows, DATABASE),
    # Checks that read few rows come first: a request may reach its time limit before the last check.
    Check("leases", data.overdue_leases, DATA),
    Check("feed_gaps", feed.gaps, DATA),
    Check("expired_writers", feed.expired_writers, DATA),
    Check("index", feed.index, DATA),
    Check("parents", trees.parents, DATA),
    Check("roots", trees.roots, DATA),
    Check("provider_names", data.same_names, DATA),
    Check("incomplete_providers", rows.incomplete_providers, DATA),
    Check("disabled_providers", data.disabled_providers, DATA),
    Check("impossible_inventories", rows.impossible_inventories, DATA),
    Check("lost_inventories", rows.lost_inventories, DATA),
    Check("idle_consumers", data.idle_consumers, DATA),
    Check("consumers_without_owner", data.without_owner, DATA),
    Check("lost_allocations", data.lost_allocations, DATA),
    Check("allocations_without_consumer", data.without_consumer, DATA),
    Check("repeated_allocations", rows.repeated_allocations, DATA),
    Check("over_commitment", over_commitment.over_commitment, DATA),
)


def all_checks(extensions: Iterable[Extension]) -> tuple[Check, ...]:
    """Return the checks of the doctor and of these extensions."""
    return (*CHECKS, *(check for extension in extensions for check in extension.checks()))


#: Names of all checks, including the checks of every installed extension.
NAMES: tuple[str, ...] = tuple(check.name for check in all_checks(extension.installed_extensions().values()))
