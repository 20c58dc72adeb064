"""A database of OpenStack Placement: its tables (docs: database-schema) with rows.

It is created without code of this service, so that tests show that the service takes over such a database.  Some rows
result from races in OpenStack Placement; its schema allows them.
"""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import os_resource_classes
import sqlalchemy as sa

NEWEST, OLDER = "a082b8bb98d0", "422ece571366"

_TABLES = """
CREATE TABLE resource_providers (
    {times}, id {id}, uuid VARCHAR(36) NOT NULL, name VARCHAR(200), generation INTEGER,
    root_provider_id INTEGER, parent_provider_id INTEGER,
    CONSTRAINT uniq_resource_providers0uuid UNIQUE (uuid), CONSTRAINT uniq_resource_providers0name UNIQUE (name),
    FOREIGN KEY (root_provider_id) REFERENCES resource_providers (id),
    FOREIGN KEY (parent_provider_id) REFERENCES resource_providers (id));
CREATE INDEX resource_providers_root_provider_id_idx ON resource_providers (root_provider_id);
CREATE INDEX resource_providers_parent_provider_id_idx ON resource_providers (parent_provider_id);
CREATE TABLE inventories (
    {times}, id {id}, resource_provider_id INTEGER NOT NULL, resource_class_id INTEGER NOT NULL,
    total INTEGER NOT NULL, reserved INTEGER NOT NULL, min_unit INTEGER NOT NULL, max_unit INTEGER NOT NULL,
    step_size INTEGER NOT NULL, allocation_ratio FLOAT NOT NULL,
    CONSTRAINT uniq_inventories0resource_provider_resource_class UNIQUE (resource_provider_id, resource_class_id));
CREATE INDEX inventories_resource_class_id_idx ON inventories (resource_class_id);
CREATE TABLE allocations (
    {times}, id {id}, resource_provider_id INTEGER NOT NULL, consumer_id VARCHAR(36) NOT NULL,
    resource_class_id INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE INDEX allocations_resource_provider_class_used_idx
    ON allocations (resource_provider_id, resource_class_id, used);
CREATE INDEX allocations_resource_class_id_idx ON allocations (resource_class_id);
CREATE INDEX allocations_consumer_id_idx ON allocations (consumer_id);
CREATE TABLE consumer_types (
    {times}, id {id}, name VARCHAR(255) NOT NULL, CONSTRAINT uniq_consumer_types0name UNIQUE (name));
CREATE TABLE consumers (
    {times}, id {id}, uuid VARCHAR(36) NOT NULL, project_id INTEGER NOT NULL, user_id INTEGER NOT NULL,
    generation INTEGER DEFAULT 0 NOT NULL, consumer_type_id INTEGER,
    CONSTRAINT uniq_consumers0uuid UNIQUE (uuid),
    CONSTRAINT consumers_consumer_type_id_fkey FOREIGN KEY (consumer_type_id) REFERENCES consumer_types (id));
CREATE INDEX consumers_project_id_uuid_idx ON consumers (project_id, uuid);
CREATE INDEX consumers_project_id_user_id_uuid_idx ON consumers (project_id, user_id, uuid);
CREATE INDEX consumers_consumer_type_id_idx ON consumers (consumer_type_id);
CREATE TABLE projects (
    {times}, id {id}, external_id VARCHAR(255) NOT NULL, CONSTRAINT uniq_projects0external_id UNIQUE (external_id));
CREATE TABLE users (
    {times}, id {id}, external_id VARCHAR(255) NOT NULL, CONSTRAINT uniq_users0external_id UNIQUE (external_id));
CREATE TABLE resource_classes (
    {times}, id {id}, name VARCHAR(255) NOT NULL, CONSTRAINT uniq_resource_classes0name UNIQUE (name));
CREATE TABLE traits (
    {times}, id {id}, name VARCHAR(255) NOT NULL, CONSTRAINT uniq_traits0name UNIQUE (name));
CREATE TABLE resource_provider_traits (
    {times}, trait_id INTEGER NOT NULL, resource_provider_id INTEGER NOT NULL,
    PRIMARY KEY (trait_id, resource_provider_id),
    FOREIGN KEY (trait_id) REFERENCES traits (id),
    FOREIGN KEY (resource_provider_id) REFERENCES resource_providers (id));
CREATE INDEX resource_provider_traits_resource_provider_trait_idx
    ON resource_provider_traits (resource_provider_id, trait_id);
CREATE TABLE placement_aggregates (
    {times}, id {id}, uuid VARCHAR(36), CONSTRAINT uniq_placement_aggregates0uuid UNIQUE (uuid));
CREATE TABLE resource_provider_aggregates (
    {times}, resource_provider_id INTEGER NOT NULL, aggregate_id INTEGER NOT NULL,
    PRIMARY KEY (resource_provider_id, aggregate_id));
CREATE INDEX resource_provider_aggregates_aggregate_id_idx ON resource_provider_aggregates (aggregate_id);
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
"""

#: Indexes that the newest revision drops.
_OLDER_INDEXES = """
CREATE INDEX inventories_resource_provider_id_idx ON inventories (resource_provider_id);
CREATE INDEX inventories_resource_provider_resource_class_idx
    ON inventories (resource_provider_id, resource_class_id);
CREATE INDEX ix_placement_aggregates_uuid ON placement_aggregates (uuid);
CREATE INDEX resource_providers_name_idx ON resource_providers (name);
CREATE INDEX resource_providers_uuid_idx ON resource_providers (uuid);
"""

_WORDS = {
    "sqlite": {"id": "INTEGER NOT NULL PRIMARY KEY", "time": "DATETIME"},
    "mysql": {"id": "INTEGER NOT NULL PRIMARY KEY AUTO_INCREMENT", "time": "DATETIME"},
    "postgresql": {"id": "SERIAL PRIMARY KEY", "time": "TIMESTAMP WITHOUT TIME ZONE"},
}

VCPU, MEMORY_MB, DISK_GB, CUSTOM_FPGA, NO_CLASS = 0, 1, 2, 10000, 10077
NO_PROVIDER = 77
#: The times of creation, and of some updates.
MADE, CHANGED = datetime.datetime(2024, 5, 6, 7, 8, 9), datetime.datetime(2025, 1, 2, 3, 4, 5)


def uuid(name: str) -> str:
    """Return a uuid that begins with this name of at most eight hexadecimal digits."""
    return f"{name:0<8}-0000-4000-8000-000000000000"


CN1, NUMA0, NUMA1, SHARED, FULL, ROOTLESS = map(uuid, ("c1", "c1a0", "c1a1", "5a", "f0", "a0"))
AGGREGATE = uuid("a99")
INSTANCE, MIGRATION, SECOND, CROWD = map(uuid, ("111", "222", "333", "444"))
#: A consumer without allocations, allocations without a consumer, and allocations of deleted objects.
GHOST, OWNERLESS, LOST = map(uuid, ("6057", "0", "1057"))
#: The project and user of consumers written below version 1.8.
UNKNOWN_OWNER = "00000000-0000-0000-0000-000000000000"

#: The columns and rows of each table.
ROWS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "resource_classes": ("id name", [(CUSTOM_FPGA, "CUSTOM_FPGA")]),
    "traits": ("id name", [(1, "HW_CPU_X86_AVX"), (2, "MISC_SHARES_VIA_AGGREGATE"), (3, "CUSTOM_GOLD")]),
    "placement_aggregates": ("id uuid", [(1, AGGREGATE), (2, uuid("b99"))]),
    "projects": ("id external_id", [(1, "project-a"), (2, "project-b"), (3, UNKNOWN_OWNER)]),
    "users": ("id external_id", [(1, "alice"), (2, "bob"), (3, UNKNOWN_OWNER)]),
    "consumer_types": ("id name", [(1, "INSTANCE"), (2, "MIGRATION")]),
    "resource_providers": (
        "id uuid name generation root_provider_id parent_provider_id",
        [
            (1, CN1, "cn1", 7, 1, None),
            (2, NUMA0, "cn1_numa0", 3, 1, 1),
            (3, NUMA1, "cn1_numa1", 4, 1, 1),
            (4, SHARED, "storage é", 2, 4, None),
            (5, FULL, "full", 19, 5, None),
            (6, ROOTLESS, "rootless", 1, None, None),
        ],
    ),
    "inventories": (
        "resource_provider_id resource_class_id total reserved min_unit max_unit step_size allocation_ratio",
        [
            (1, MEMORY_MB, 65536, 512, 1, 65536, 1, 1.5),
            (2, VCPU, 8, 0, 1, 8, 1, 16.0),
            (3, VCPU, 8, 1, 1, 8, 1, 1.1),
            (4, DISK_GB, 2000, 100, 5, 1000, 5, 1.0),
            (5, VCPU, 8, 0, 1, 8, 1, 1.0),
            (5, MEMORY_MB, 4096, 4096, 1, 4096, 1, 1.0),
            (6, CUSTOM_FPGA, 4, 0, 1, 4, 1, 1.0),
            (NO_PROVIDER, VCPU, 8, 0, 1, 8, 1, 1.0),
        ],
    ),
    "resource_provider_traits": ("trait_id resource_provider_id", [(1, 1), (3, 3), (2, 4), (3, 4)]),
    "resource_provider_aggregates": ("resource_provider_id aggregate_id", [(1, 1), (4, 1), (5, 2), (NO_PROVIDER, 1)]),
    "consumers": (
        "uuid project_id user_id generation consumer_type_id",
        [
            (INSTANCE, 1, 1, 3, 1),
            (MIGRATION, 1, 2, 1, 2),
            (SECOND, 2, 1, 2, None),
            (CROWD, 3, 3, 12, None),
            (GHOST, 2, 2, 0, 1),
            (LOST, 1, 1, 1, 1),
        ],
    ),
    "allocations": (
        "consumer_id resource_provider_id resource_class_id used",
        [
            (INSTANCE, 1, MEMORY_MB, 2048),
            (INSTANCE, 2, VCPU, 4),
            (INSTANCE, 4, DISK_GB, 20),
            (MIGRATION, 3, VCPU, 7),
            (SECOND, 5, VCPU, 8),
            (CROWD, 5, VCPU, 6),  # 14 of 8: two concurrent claims were granted
            (SECOND, 5, MEMORY_MB, 64),  # reserved afterwards
            (OWNERLESS, 2, VCPU, 2),
            (OWNERLESS, 1, MEMORY_MB, 512),
            (LOST, NO_PROVIDER, VCPU, 1),
            (SECOND, 6, CUSTOM_FPGA, 1),
        ],
    ),
}


#: The rows after a class was deleted while a request began to use it; OpenStack Placement then fails in places.
RUINS = {
    "inventories": (ROWS["inventories"][0], [(6, NO_CLASS, 4, 0, 1, 4, 1, 1.0)]),
    "allocations": (ROWS["allocations"][0], [(LOST, 6, NO_CLASS, 1)]),
}
#: Tables whose rows are updated, not only inserted and deleted.
_CHANGING = ("resource_classes", "resource_providers", "inventories", "consumers")


def make(engine: sa.Engine, revision: str) -> None:
    """Create and fill the tables of a revision, NEWEST or OLDER, in an empty database."""
    with engine.begin() as connection:
        words = _WORDS[engine.dialect.name]
        times = "created_at {time}, updated_at {time}".format_map(words)
        for statement in _TABLES.rstrip(";\n").split(";"):
            connection.execute(sa.text(statement.format(times=times, **words)))
        insert(connection, "alembic_version", "version_num", [(NEWEST,)])
        if revision == OLDER:
            downgrade(connection)
        insert_standard_classes(connection)
        fill(connection)


def downgrade(connection: sa.Connection) -> None:
    """Downgrade the tables from the revision NEWEST to OLDER."""
    for statement in _OLDER_INDEXES.rstrip(";\n").split(";"):
        connection.execute(sa.text(statement))
    connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{OLDER}'"))


def insert_standard_classes(connection: sa.Connection) -> None:
    """Insert the standard classes, as a service does whenever it starts."""
    if connection.dialect.name == "mysql":
        connection.execute(sa.text("SET SESSION sql_mode = 'TRADITIONAL,NO_AUTO_VALUE_ON_ZERO'"))
    insert(connection, "resource_classes", "id name", list(enumerate(os_resource_classes.STANDARDS)))


def fill(connection: sa.Connection, contents: dict[str, tuple[str, list[tuple[Any, ...]]]] = ROWS) -> None:
    """Insert the rows; every second row that can be updated has a later ``updated_at``."""
    for table, (columns, rows) in contents.items():
        dates = itertools.cycle([(MADE, None), (MADE, CHANGED if table in _CHANGING else None)])
        dated = [(*row, *date) for row, date in zip(rows, dates, strict=False)]
        insert(connection, table, f"{columns} created_at updated_at", dated)
        if connection.dialect.name == "postgresql" and columns.startswith("id "):
            # The sequence does not know ids that were inserted explicitly.
            newest = f"(SELECT max(id) FROM {table})"
            connection.execute(sa.text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {newest})"))


def insert(connection: sa.Connection, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows with these columns."""
    names = columns.split()
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"
    connection.execute(sa.text(statement), [dict(zip(names, row, strict=True)) for row in rows])
