"""The entry point of the image (docs/containers.rst): prepares what the service needs, and becomes uWSGI.

Any other command is run as it is.
"""

import os
import secrets
import signal
import sys
from pathlib import Path

USER = "placement"
ADDRESS = "http://127.0.0.1:8778"
#: uWSGI shows and removes it once it serves; after a reload it is not there, and a command that fails would end uWSGI.
GREETING = Path("/tmp/greeting")
SHOW = f"exec:cat {GREETING} 2>/dev/null; rm -f {GREETING}"


def main(words: list[str]) -> None:
    """Become the command of these words."""
    if words[0] == "uwsgi":
        # Process 1 ignores it otherwise; uWSGI has a handler of its own.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        words = [*words, *_prepared()]
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.exit(f"{words[0]}: {error.strerror}")


def _prepared() -> list[str]:
    """Prepare what the configuration needs, and return options for uWSGI."""
    from oslo_config import cfg

    from placement import conf as options

    try:
        conf = options.load()
    except cfg.Error:
        return []  # the service says what is wrong, and ends
    try:
        made = _make_password(conf) if conf.api.auth_strategy == "http_basic" else None
    except (OSError, ValueError) as error:
        sys.exit(f"There is no password for [api]auth_strategy = http_basic: {error}")
    if not _is_sqlite(conf):
        return []
    # The file belongs to this container, so it may be upgraded without an operator.
    os.environ.setdefault("OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP", "true")
    return _shown_later("".join(_greeting(conf, made)))


def _shown_later(greeting: str) -> list[str]:
    """Return options for uWSGI, which shows the greeting once it serves."""
    try:
        GREETING.touch(mode=0o600)
        GREETING.write_text(greeting)
    except OSError:
        # Shown too early rather than never: it may have the password.
        sys.stdout.write(greeting)
        sys.stdout.flush()
        return []
    return ["--hook-accepting1-once", SHOW]


def _make_password(conf) -> str | None:
    """Set the password of the user if $PLACEMENT_PASSWORD is set or the file is missing; return a generated one."""
    import bcrypt

    file = Path(conf.oslo_middleware.http_basic_auth_user_file)
    given = os.environ.pop("PLACEMENT_PASSWORD", "")
    if not given and file.exists():
        return None
    if not given and not _is_sqlite(conf):
        # Only a container alone shows what it has generated; several would also have different passwords.
        raise ValueError("set $PLACEMENT_PASSWORD, or mount the file")
    password = given or secrets.token_urlsafe(15)
    written = file.with_suffix(".new")
    written.touch(mode=0o600)
    lines = file.read_text().splitlines() if file.exists() else []
    others = [line for line in lines if line.partition(":")[0] != USER]
    own = f"{USER}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt()).decode()}"
    written.write_text("\n".join([own, *others, ""]))
    written.replace(file)
    return None if given else password


def _is_sqlite(conf) -> bool:
    return conf.placement_database.connection.partition(":")[0].partition("+")[0] == "sqlite"


def _greeting(conf, made: str | None):
    """Yield what the log shows once the service answers; the address is that of `--publish 127.0.0.1:8778:8778`."""
    from placement import extension

    yield f"Placement serves on {ADDRESS}, if the port is published there.\n"
    if made:
        yield f'The user is "{USER}", the password "{made}"; it is not shown again.  Try:\n\n'
        yield f"  curl -u {USER}:{made} -H 'OpenStack-API-Version: placement latest' {ADDRESS}/resource_providers\n\n"
    for each in extension.enabled(conf):
        if each.greeting:
            yield each.greeting(conf, ADDRESS)


if __name__ == "__main__":
    main(sys.argv[1:])
