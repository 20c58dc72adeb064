"""Error codes of MySQL, MariaDB, PostgreSQL and SQLite: the class and the meaning of each.

The tables list the codes that a statement, a connect or a COMMIT of this service can meet.  An error with a code in no
table is internal (a wrong statement, or a wrong use of the driver), unless its exception or its connection shows
otherwise.  MySQL's numbers from 2000 to 2999 belong to its client libraries; 9001 belongs to ProxySQL.
"""

from __future__ import annotations

import enum
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from placement.signals import ErrorLabel


class ErrorClass(enum.Enum):
    """The meaning of a driver error for its transaction."""

    COLLISION = "another transaction was in the way; this one is rolled back"
    LOST = "the server is gone, or cannot continue for now"
    DENIED = "the server refuses this user, or has no such database, until an operator changes that"
    VALUE = "a value does not fit its column"
    INTERNAL = "the statement is wrong"


class Code(NamedTuple):
    """The meaning of an error code."""

    error_class: ErrorClass
    reason: str
    label: ErrorLabel
    #: Whether the server refuses writes, while another one may accept them; the transaction is rolled back.
    read_only: bool = False


def _collision(reason: str, label: ErrorLabel) -> Code:
    return Code(ErrorClass.COLLISION, reason, label)


def _lost_server(reason: str) -> Code:
    return Code(ErrorClass.LOST, reason, "lost")


def _read_only(reason: str) -> Code:
    return Code(ErrorClass.LOST, reason, "lost", read_only=True)


def _denied_login(reason: str) -> Code:
    return Code(ErrorClass.DENIED, reason, "denied")


def _value(reason: str) -> Code:
    return Code(ErrorClass.VALUE, reason, "value")


MYSQL: Mapping[int, Code] = {
    # Concurrency
    1020: _collision("record changed since last read (MariaDB's innodb_snapshot_isolation)", "serialization"),
    1022: _collision("duplicate key, found when the row is written", "duplicate"),
    1205: _collision("lock wait timeout, of a row or of a table's metadata", "lock_timeout"),
    1213: _collision("deadlock; also how Galera reports a failed certification", "deadlock"),
    1412: _collision("table definition changed since the snapshot was taken", "serialization"),
    1615: _collision("prepared statement must be prepared again, after a change of the schema", "serialization"),
    1689: _collision("lock wait aborted, because a change of the schema waits for the table", "lock_timeout"),
    3101: _collision("failed certification in Group Replication, reported at COMMIT", "serialization"),
    3572: _collision("lock not available at once (NOWAIT)", "lock_timeout"),
    # The server refuses writes
    1036: _read_only("table is read only (InnoDB in read-only or forced recovery mode)"),
    1290: _read_only("server runs with --read-only or --super-read-only: a demoted primary"),
    1792: _read_only("transactions are read only by default on this server"),
    1836: _read_only("server runs in read-only mode"),
    1874: _read_only("InnoDB is in read-only mode"),
    3100: _read_only("a hook refused the COMMIT: the member of Group Replication is in error or without a majority"),
    # The server stops, or closes the connection
    1047: _lost_server("Galera: the node is not part of the primary component"),
    1053: _lost_server("server shutdown in progress"),
    1077: _lost_server("server shut down"),
    1078: _lost_server("server received a signal to shut down"),
    1079: _lost_server("server shutdown complete"),
    1080: _lost_server("connection closed by force at shutdown"),
    1152: _lost_server("connection aborted"),
    1184: _lost_server("connection aborted before it was authenticated"),
    1927: _lost_server("MariaDB: connection was killed"),
    3032: _lost_server("MySQL 8: server is in offline mode"),
    3168: _lost_server("MySQL 8: server is not available"),
    3169: _lost_server("MySQL 8: session was killed"),
    4031: _lost_server("MySQL 8: connection was idle for longer than wait_timeout"),
    9001: _lost_server("ProxySQL: no backend could be reached in time"),
    # The statement was killed, or exceeded a limit
    1028: _lost_server("sort aborted"),
    1317: _lost_server("statement was killed"),
    1969: _lost_server("MariaDB: statement exceeded max_statement_time"),
    3024: _lost_server("MySQL: statement exceeded max_execution_time"),
    # Network
    1039: _lost_server("unexpected end of a file or a packet"),
    1042: _lost_server("host name of the client could not be resolved"),
    1043: _lost_server("handshake was aborted"),
    1154: _lost_server("read error from the connection's pipe"),
    1155: _lost_server("error from fcntl() on the connection"),
    1156: _lost_server("packets out of order"),
    1157: _lost_server("packet could not be uncompressed"),
    1158: _lost_server("read error on the connection"),
    1159: _lost_server("read timeout on the connection"),
    1160: _lost_server("write error on the connection"),
    1161: _lost_server("write timeout on the connection"),
    # Resources are exhausted
    1021: _lost_server("disk full"),
    1037: _lost_server("out of memory"),
    1038: _lost_server("out of sort memory"),
    1040: _lost_server("too many connections"),
    1041: _lost_server("out of resources"),
    1114: _lost_server("table or temporary space is full"),
    1135: _lost_server("cannot create a thread for the connection"),
    1203: _lost_server("user has max_user_connections open"),
    1206: _lost_server("lock table is full: the buffer pool is too small"),
    1226: _lost_server("user has exceeded a limit per hour or of connections"),
    1461: _lost_server("too many prepared statements"),
    1637: _lost_server("too many concurrent transactions: no undo slot is free"),
    3019: _lost_server("undo log is full"),
    3170: _lost_server("memory limit exceeded"),
    # Storage and log
    1015: _lost_server("file could not be locked"),
    1023: _lost_server("error on closing a file"),
    1024: _lost_server("error on reading a file"),
    1026: _lost_server("error on writing a file"),
    1030: _lost_server("error of the storage engine"),
    1032: _lost_server("record of an index not found by the storage engine"),
    1034: _lost_server("damaged index, or no space to sort it"),
    1180: _lost_server("error during COMMIT, of the disk or of Galera"),
    1181: _lost_server("error during ROLLBACK"),
    1194: _lost_server("table is damaged"),
    1195: _lost_server("table is damaged, and was not repaired"),
    1296: _lost_server("error reported by the storage engine"),
    1297: _lost_server("temporary error reported by the storage engine"),
    1467: _lost_server("storage engine failed to return an auto-increment value"),
    1534: _lost_server("binary log could not be written"),
    1598: _lost_server("binary log cannot be written"),
    1712: _lost_server("index is damaged"),
    1812: _lost_server("tablespace is missing"),
    1814: _lost_server("tablespace was discarded"),
    1815: _lost_server("internal error of the server"),
    1932: _lost_server("table is missing in the storage engine"),
    # Accounts, privileges and databases
    1044: _denied_login("user has no access to the database"),
    1045: _denied_login("wrong user or password"),
    1049: _denied_login("no such database"),
    1129: _denied_login("host is blocked after many connection errors, until FLUSH HOSTS"),
    1130: _denied_login("host may not connect"),
    1142: _denied_login("user lacks a privilege on the table"),
    1143: _denied_login("user lacks a privilege on the column"),
    1227: _denied_login("user lacks a privilege"),
    1251: _denied_login("client does not support the authentication that the account requires"),
    1524: _denied_login("authentication plugin is not loaded"),
    1698: _denied_login("wrong user, for an account without a password"),
    1820: _denied_login("password must be changed first"),
    1862: _denied_login("password has expired"),
    3118: _denied_login("MySQL 8: account is locked"),
    3159: _denied_login("MySQL 8: connections must use TLS"),
    3955: _denied_login("MySQL 8: account is blocked after many wrong passwords"),
    4151: _denied_login("MariaDB: account is locked"),
    # Values
    1119: _value("thread stack overrun: a statement nested too deeply"),
    1153: _value("packet larger than max_allowed_packet"),
    1197: _value("transaction larger than max_binlog_cache_size"),
    1264: _value("number out of range"),
    1265: _value("data truncated"),
    1267: _value("illegal mix of two collations: characters that are not in the column's character set"),
    1270: _value("illegal mix of three collations, likewise"),
    1271: _value("illegal mix of more collations, likewise"),
    1292: _value("wrong date or number"),
    1300: _value("string is not valid in the character set of the connection"),
    1366: _value("characters that are not in the column's character set"),
    1390: _value("more parameters than a prepared statement takes"),
    1406: _value("string too long"),
    1436: _value("thread stack overrun, likewise"),
    1690: _value("result of a calculation out of range"),
    1713: _value("row too large for the undo log"),
    3988: _value("MySQL 8: characters that cannot be converted to the other side's character set"),
    # Client libraries
    2001: _lost_server("cannot create a socket"),
    2002: _lost_server("cannot connect through the local socket"),
    2003: _lost_server("cannot connect"),
    2004: _lost_server("cannot create a TCP socket"),
    2005: _lost_server("host name cannot be resolved"),
    2006: _lost_server("server has gone away"),
    2008: _lost_server("client is out of memory"),
    2012: _lost_server("error in the handshake"),
    2013: _lost_server("connection was lost, or the server was silent for read_timeout seconds"),
    2014: _lost_server("commands out of sync: an earlier statement was interrupted"),
    2020: _value("packet larger than max_allowed_packet, detected by the client library"),
    2026: _lost_server("TLS failed"),
    2027: _lost_server("malformed packet"),
    2055: _lost_server("connection was lost in the middle of a packet"),
    2059: _denied_login("authentication plugin cannot be loaded"),
    2061: _denied_login("authentication plugin reported an error"),
}

POSTGRESQL: Mapping[str, Code] = {
    # Transactions
    "25006": _read_only("transaction is read only: a standby, or default_transaction_read_only"),
    "25P03": _lost_server("transaction was idle for longer than idle_in_transaction_session_timeout"),
    "25P04": _lost_server("transaction exceeded transaction_timeout"),
    "40001": _collision("serialization failure", "serialization"),
    "40002": _collision("integrity constraint violated by the transaction as a whole", "duplicate"),
    "40003": _lost_server("statement completion unknown"),
    "40P01": _collision("deadlock", "deadlock"),
    "55006": _collision("object is in use", "lock_timeout"),
    "55P03": _collision("lock not available, or lock_timeout", "lock_timeout"),
    "72000": _collision("snapshot too old", "serialization"),
    # A pooler that assigns another session to each transaction loses prepared statements
    "26000": _lost_server("prepared statement does not exist: another session behind a pooler"),
    "42P05": _lost_server("prepared statement exists already: another session behind a pooler"),
    # Accounts, privileges and databases
    "3D000": _denied_login("no such database"),
    "42501": _denied_login("user lacks a privilege"),
}
#: Meanings of all other SQLSTATEs, by class: the first two characters.
POSTGRESQL_CLASSES: Mapping[str, Code] = {
    "08": _lost_server("connection exception"),
    "22": _value("data exception"),
    "23": _collision("integrity constraint violated by a commit since this attempt read", "duplicate"),
    "28": _denied_login("invalid authorization"),
    "53": _lost_server("resources exhausted: connections, memory, disk"),
    "54": _value("statement too large or nested too deeply"),
    "57": _lost_server(
        "operator intervention: statement cancelled, shutdown, crash, not started yet, session idle too long"
    ),
    "58": _lost_server("system error of the server: files, input and output"),
    "F0": _lost_server("error in the server's configuration file"),
    "XX": _lost_server("internal error of the server, damaged data included"),
}
#: Parts of the messages with which PostgreSQL refuses a connection; these errors have no SQLSTATE.
CONNECTION_DENIED = (
    "authentication failed",
    "no pg_hba.conf entry",
    "requires a valid client certificate",
    "does not exist",
    "permission denied for database",
)

SQLITE: Mapping[int, Code] = {
    sqlite3.SQLITE_BUSY: _collision("another process holds the lock of the file", "lock_timeout"),
    sqlite3.SQLITE_LOCKED: _collision("another connection of this process holds the lock", "lock_timeout"),
    sqlite3.SQLITE_PROTOCOL: _collision("locks of the write-ahead log were contended for too long", "lock_timeout"),
    sqlite3.SQLITE_SCHEMA: _collision("schema changed", "serialization"),
    sqlite3.SQLITE_CANTOPEN: _lost_server("file cannot be opened"),
    sqlite3.SQLITE_CORRUPT: _lost_server("file is damaged"),
    sqlite3.SQLITE_FULL: _lost_server("disk full, or max_page_count"),
    sqlite3.SQLITE_INTERRUPT: _lost_server("statement was interrupted"),
    sqlite3.SQLITE_IOERR: _lost_server("file system error"),
    sqlite3.SQLITE_NOLFS: _lost_server("file is larger than the file system allows"),
    sqlite3.SQLITE_NOMEM: _lost_server("out of memory"),
    sqlite3.SQLITE_NOTADB: _lost_server("file is not a database"),
    sqlite3.SQLITE_PERM: _lost_server("access to the file was denied"),
    sqlite3.SQLITE_READONLY: _lost_server("file is read only, or was replaced"),
    sqlite3.SQLITE_AUTH: _denied_login("statement is not authorized"),
    sqlite3.SQLITE_MISMATCH: _value("value of the wrong type"),
    sqlite3.SQLITE_TOOBIG: _value("string or blob too large"),
}
#: Parts of the messages of SQLite and psycopg about a statement with too many values; these errors have no code.
TOO_MANY_VALUES = ("too many SQL variables", "Expression tree is too large", "number of parameters must be between")
