"""Checks of the database: what the schema and the sessions of this service are."""

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
    """Return SQLAlchemy's name of the kind of database; that of MariaDB is the one of MySQL."""
    name = subject.database.engine.dialect.name
    return "mysql" if name in _MYSQL else name


def revision(subject: Subject) -> Iterator[Finding]:
    """Find that the schema is not that of this program."""
    engine = subject.database.reading_engine
    additions = extension.additions(subject.conf)
    with subject.database.direct():
        state, sentence = schema.state(engine), schema.finding(engine, additions)
        lacking = schema.lacking(engine, additions)
    if state is schema.State.UNKNOWN and not lacking:
        yield warning(f"{sentence} It has all that this program needs.", (), "Upgrade this program, too.")
    elif sentence is not None:
        yield error(sentence, tuple(lacking) if state is schema.State.UNKNOWN else (), _SYNC)
    elif lacking:
        yield error(
            "The database is at the newest revision, and lacks tables or columns of it: the revision was stamped, or "
            "they were dropped.",
            tuple(lacking),
            "placement-manage db stamp <the revision that it has>; placement-manage db sync",
        )


def isolation(subject: Subject) -> Iterator[Finding]:
    """Find sessions of another isolation level than the service asks for: a pooler or a trigger of logins sets it."""
    kind, database = dialect(subject), subject.database
    if kind == "sqlite":
        raise NotMadeError("SQLite has one isolation level.")
    wanted = [("writes", database.engine, "READ COMMITTED")]
    if kind == "mysql":
        wanted.append(("reads", database.reading_engine, "REPEATABLE READ"))
    with database.direct():
        found = [(use, level, _level(engine)) for use, engine, level in wanted]
    where = tuple(f"sessions for {use}: {level}, and not {wished}" for use, wished, level in found if level != wished)
    if where:
        yield error(
            "Sessions have another isolation level than the service asks for: claims may be granted that do not fit.",
            where,
            "Have nothing between the service and the database change the isolation level of sessions.",
        )


def _level(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.get_isolation_level())


def engine_of_tables(subject: Subject) -> Iterator[Finding]:
    """Find tables without transactions."""
    if dialect(subject) != "mysql":
        raise NotMadeError("Only MariaDB and MySQL have several engines.")
    found = tuple(f"{row.name}: {row.engine}" for row in subject.rows(_ENGINES) if row.engine.upper() != "INNODB")
    if found:
        names = [place.partition(":")[0] for place in found]
        yield error(
            "Tables have an engine without transactions or locks of rows.",
            found,
            "; ".join(f"ALTER TABLE {name} ENGINE=InnoDB" for name in names),
        )


def foreign_keys(subject: Subject) -> Iterator[Finding]:
    """Find foreign keys that are missing, are not checked, or are violated."""
    additions = extension.additions(subject.conf)
    wanted = [*tables.CORE, *(table for each in additions for table in each.tables)]
    missing = subject.database.snapshot(lambda db: _missing_keys(db, wanted))
    ours = tuple(text for table, text in missing if table in tables.OURS)
    if ours:
        yield error(
            "Foreign keys are missing that the service relies on: a writer that was ended could go on.",
            ours,
            "Add them by ALTER TABLE, as docs/database.rst has them.",
        )
    others = tuple(text for table, text in missing if table not in tables.OURS)
    if others:
        yield warning(
            "Foreign keys are missing: rows may refer to what does not exist.",
            others,
            "Add them by ALTER TABLE, as docs/database.rst has them.",
        )
    if dialect(subject) == "sqlite":
        yield from _unchecked(subject)


def _missing_keys(connection: Connection, wanted_tables: Sequence[sa.Table]) -> list[tuple[sa.Table, str]]:
    names = [table.name for table in wanted_tables]
    found = sa.inspect(connection).get_multi_foreign_keys(filter_names=names)
    present = {(table, _key(key)) for (_, table), keys in found.items() for key in keys}
    return [
        (table, f"{table.name} ({', '.join(wanted[0])}) -> {wanted[1]} ({', '.join(wanted[2])})")
        for table in wanted_tables
        for constraint in sorted(table.foreign_key_constraints, key=lambda each: [*each.column_keys])
        if (table.name, wanted := _wanted(constraint)) not in present
    ]


_Key = tuple[tuple[str, ...], str, tuple[str, ...], bool]


def _key(found: Any) -> _Key:
    cascades = found["options"].get("ondelete", "").upper() == "CASCADE"
    return (*(tuple(found["constrained_columns"]), found["referred_table"], tuple(found["referred_columns"])), cascades)


def _wanted(constraint: sa.ForeignKeyConstraint) -> _Key:
    columns = tuple(element.column.name for element in constraint.elements)
    return tuple(constraint.column_keys), constraint.referred_table.name, columns, constraint.ondelete == "CASCADE"


def _unchecked(subject: Subject) -> Iterator[Finding]:
    database = subject.database
    with database.direct():
        engines = {"reads": database.reading_engine, "writes": database.engine}
        off = tuple(f"connections for {use}" for use, engine in engines.items() if not _are_checked(engine))
    if off:
        sentence = "SQLite does not check foreign keys in connections of the service."
        yield error(sentence, off, "Use a library of SQLite that was compiled with foreign keys.")
    violated = tuple(f"{row[0]}, row {row[1]}: no such row of {row[2]}" for row in subject.rows(_VIOLATED))
    if violated:
        yield warning(
            "Rows refer to rows that do not exist: a program that does not check foreign keys has written to the file.",
            violated,
            "See the other checks; what is not among them, delete or complete by hand, and then run "
            "placement-manage db restored.",
        )


def _are_checked(engine: Engine) -> bool:
    with engine.connect() as connection:
        # By the driver, because SQLAlchemy would begin a transaction, which takes the lock for writes.
        return bool(connection.connection.cursor().execute("PRAGMA foreign_keys").fetchone()[0])


def standard_rows(subject: Subject) -> Iterator[Finding]:
    """Find missing standard classes and traits, and a feed without an identity."""
    try:
        missing = subject.database.read(standard.missing)
    except RuntimeError as reason:
        yield error(
            f"The standard resource classes cannot be inserted: {reason}",
            _taken(subject),
            "Another program gave these ids away: give its classes ids from 10000 on, by hand.",
        )
        return
    if missing:
        sentence = "Standard resource classes or traits have no row: requests that name them fail, or insert them."
        yield error(sentence, tuple(missing), FIX, fixable=True)
    if not subject.database.read(standard.has_identity):
        sentence = "The feed has no identity: every search reads the whole database."
        yield error(sentence, ("feed_instance",), FIX, fixable=True)


def _taken(subject: Subject) -> tuple[str, ...]:
    known = {number: name for name, number in standard.CLASS_IDS.items()}
    return tuple(
        f"id {row.id}: {row.name}, and not {known[row.id]}"
        for row in subject.rows(_CLASSES)
        if known.get(row.id, row.name) != row.name
    )


_ENGINES = sa.text(
    "SELECT table_name AS name, engine AS engine FROM information_schema.tables "
    "WHERE table_schema = DATABASE() AND table_name IN :names ORDER BY table_name"
).bindparams(sa.bindparam("names", value=list(tables.metadata.tables), expanding=True))
_VIOLATED = sa.text("PRAGMA foreign_key_check")
_CLASSES = sa.select(tables.resource_classes.c.id, tables.resource_classes.c.name).where(
    tables.resource_classes.c.id < standard.FIRST_CUSTOM_ID
)
