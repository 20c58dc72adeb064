"""Checks of the database: schema, sessions, foreign keys and standard rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from placement import extension
from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, error, warning
from placement.db.schema import schema, tables
from placement.db.upkeep import standard
from placement.extensions.doctor.examination import FIX

_MYSQL = ("mysql", "mariadb")
_SYNC = "placement-manage db sync"


def dialect(subject: Subject) -> str:
    """Return the name of SQLAlchemy's dialect; "mysql" for MariaDB as well."""
    name = subject.database.engine.dialect.name
    return "mysql" if name in _MYSQL else name


def revision(subject: Subject) -> Iterator[Finding]:
    """Find differences between the schema of the database and the schema that this version requires."""
    engine = subject.database.reading_engine
    additions = extension.additions(subject.conf)
    with subject.database.direct():
        state, sentence = schema.state(engine), schema.finding(engine, additions)
        lacking = schema.missing_columns(engine, additions)
    if state is schema.State.UNKNOWN and not lacking:
        yield warning(
            f"{sentence} It has every table and column that this version requires.",
            (),
            "Upgrade this installation as well.",
        )
    elif sentence is not None:
        yield error(sentence, tuple(lacking) if state is schema.State.UNKNOWN else (), _SYNC)
    elif lacking:
        yield error(
            "The database is at the newest revision but lacks tables or columns: the revision was stamped, or they "
            "were dropped.",
            tuple(lacking),
            "placement-manage db stamp <the actual revision>; placement-manage db sync",
        )


def isolation(subject: Subject) -> Iterator[Finding]:
    """Find sessions whose isolation level a pooler or a login trigger has changed."""
    kind, database = dialect(subject), subject.database
    if kind == "sqlite":
        raise NotMadeError("SQLite has one isolation level.")
    required = [("writes", database.engine, "READ COMMITTED")]
    if kind == "mysql":
        required.append(("reads", database.reading_engine, "REPEATABLE READ"))
    with database.direct():
        levels = [(use, level, _level(engine)) for use, engine, level in required]
    where = tuple(
        f"sessions for {use}: {level} instead of {needed}" for use, needed, level in levels if level != needed
    )
    if where:
        yield error(
            "Sessions do not have the isolation level that the service requests: claims may exceed the capacity.",
            where,
            "Configure poolers and login triggers so that they do not change the isolation level of sessions.",
        )


def _level(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.get_isolation_level())


def engine_of_tables(subject: Subject) -> Iterator[Finding]:
    """Find tables whose storage engine has no transactions."""
    if dialect(subject) != "mysql":
        raise NotMadeError("Only MariaDB and MySQL have several storage engines.")
    rows = [row for row in subject.rows(_ENGINES) if row.engine.upper() != "INNODB"]
    if rows:
        yield error(
            "Tables have a storage engine without transactions or row locks.",
            tuple(f"{row.name}: {row.engine}" for row in rows),
            "; ".join(f"ALTER TABLE {row.name} ENGINE=InnoDB" for row in rows),
        )


def foreign_keys(subject: Subject) -> Iterator[Finding]:
    """Find foreign keys that are missing, not checked, or violated."""
    additions = extension.additions(subject.conf)
    required = [*tables.CORE, *(table for addition in additions for table in addition.tables)]
    missing = subject.database.snapshot(lambda db: _missing_keys(db, required))
    critical_keys = tuple(text for table, text in missing if table in tables.OURS)
    if critical_keys:
        yield error(
            "Foreign keys that the service relies on are missing: an ended feed writer could continue to write.",
            critical_keys,
            "Add them with ALTER TABLE, as docs/database.rst describes.",
        )
    other_keys = tuple(text for table, text in missing if table not in tables.OURS)
    if other_keys:
        yield warning(
            "Foreign keys are missing: rows may refer to rows that do not exist.",
            other_keys,
            "Add them with ALTER TABLE, as docs/database.rst describes.",
        )
    if dialect(subject) == "sqlite":
        yield from _unchecked_keys(subject)


def _missing_keys(connection: Connection, required: Sequence[sa.Table]) -> list[tuple[sa.Table, str]]:
    names = [table.name for table in required]
    by_table = sa.inspect(connection).get_multi_foreign_keys(filter_names=names)
    present = {(table, _reflected_key(key)) for (_, table), keys in by_table.items() for key in keys}
    return [
        (table, f"{table.name} ({', '.join(key[0])}) -> {key[1]} ({', '.join(key[2])})")
        for table in required
        for constraint in sorted(table.foreign_key_constraints, key=lambda foreign_key: [*foreign_key.column_keys])
        if (table.name, key := _declared_key(constraint)) not in present
    ]


#: Columns, referred table, referred columns, and whether deletes cascade.
_Key = tuple[tuple[str, ...], str, tuple[str, ...], bool]


def _reflected_key(key: Any) -> _Key:
    cascades = key["options"].get("ondelete", "").upper() == "CASCADE"
    return tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]), cascades


def _declared_key(constraint: sa.ForeignKeyConstraint) -> _Key:
    columns = tuple(element.column.name for element in constraint.elements)
    return tuple(constraint.column_keys), constraint.referred_table.name, columns, constraint.ondelete == "CASCADE"


def _unchecked_keys(subject: Subject) -> Iterator[Finding]:
    database = subject.database
    with database.direct():
        engines = {"reads": database.reading_engine, "writes": database.engine}
        off = tuple(f"connections for {use}" for use, engine in engines.items() if not _are_checked(engine))
    if off:
        sentence = "SQLite does not check foreign keys for the connections of the service."
        yield error(sentence, off, "Use an SQLite library that is compiled with foreign keys.")
    violated = tuple(f"{row[0]}, row {row[1]}: refers to a missing row of {row[2]}" for row in subject.rows(_VIOLATED))
    if violated:
        yield warning(
            "Rows refer to rows that do not exist: a process that does not check foreign keys has written to the file.",
            violated,
            "Fix the findings of the other checks; delete or complete the remaining rows by hand, then run "
            "placement-manage db restored.",
        )


def _are_checked(engine: Engine) -> bool:
    with engine.connect() as connection:
        # Through the driver: SQLAlchemy would begin a transaction, which takes the write lock.
        return bool(connection.connection.cursor().execute("PRAGMA foreign_keys").fetchone()[0])


def standard_rows(subject: Subject) -> Iterator[Finding]:
    """Find standard classes and traits without a row, and a change feed without an identity."""
    try:
        missing = subject.database.read(standard.missing_names)
    except RuntimeError as reason:
        yield error(
            f"The standard resource classes cannot be inserted: {reason}",
            _conflicting(subject),
            "Another process assigned these ids: change the ids of its classes to 10000 or above, by hand.",
        )
        return
    if missing:
        sentence = "Standard resource classes or traits have no row: requests that name them fail or insert the row."
        yield error(sentence, tuple(missing), FIX, fixable=True)
    if not subject.database.read(standard.has_identity):
        sentence = "The change feed has no identity: every search reads the whole database."
        yield error(sentence, ("feed_instance",), FIX, fixable=True)


def _conflicting(subject: Subject) -> tuple[str, ...]:
    standard_names = {number: name for name, number in standard.CLASS_IDS.items()}
    return tuple(
        f"id {row.id}: {row.name} instead of {standard_names[row.id]}"
        for row in subject.rows(_CLASSES)
        if standard_names.get(row.id, row.name) != row.name
    )


_ENGINES = sa.text(
    "SELECT table_name AS name, engine AS engine FROM information_schema.tables "
    "WHERE table_schema = DATABASE() AND table_name IN :names ORDER BY table_name"
).bindparams(sa.bindparam("names", value=list(tables.metadata.tables), expanding=True))
_VIOLATED = sa.text("PRAGMA foreign_key_check")
_CLASSES = sa.select(tables.resource_classes.c.id, tables.resource_classes.c.name).where(
    tables.resource_classes.c.id < standard.FIRST_CUSTOM_ID
)
