"""The entry point of the image (docs/containers.rst): prepares password and options, then executes uWSGI.

Any other command is executed unchanged.
"""

import os
import secrets
import signal
import sys
from pathlib import Path

USER = "placement"
ADDRESS = "http://127.0.0.1:8778"
#: The greeting, which uWSGI shows and removes when it starts to serve.
GREETING = Path("/tmp/greeting")
#: Must not fail after a reload, when the file is missing: a failing command would end uWSGI.
SHOW = f"exec:cat {GREETING} 2>/dev/null; rm -f {GREETING}"


def main(words: list[str]) -> None:
    """Execute a command in place of this process."""
    if words[0] == "uwsgi":
        # Process 1 ignores signals without a handler; uWSGI installs its own.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        words = [*words, *_prepare()]
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.exit(f"{words[0]}: {error.strerror}")


def _prepare() -> list[str]:
    """Prepare the password and the greeting, and return options for uWSGI."""
    from oslo_config import cfg

    from placement import conf as options

    try:
        conf = options.load()
    except cfg.Error:
        return []  # the service reports the error and ends
    try:
        generated = _set_password(conf) if conf.api.auth_strategy == "http_basic" else None
    except (OSError, ValueError) as error:
        sys.exit(f"There is no password for [api]auth_strategy = http_basic: {error}")
    if not _is_sqlite(conf):
        return []
    # The file belongs to this container, which may upgrade it without asking an operator.
    os.environ.setdefault("OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP", "true")
    return _show_later("".join(_greeting(conf, generated)))


def _show_later(greeting: str) -> list[str]:
    """Return options that make uWSGI show the greeting when it starts to serve."""
    try:
        GREETING.touch(mode=0o600)
        GREETING.write_text(greeting)
    except OSError:
        # Too early is better than never: the greeting may contain the password.
        sys.stdout.write(greeting)
        sys.stdout.flush()
        return []
    return ["--hook-accepting1-once", SHOW]


def _set_password(conf) -> str | None:
    """Write the password file if $PLACEMENT_PASSWORD is set or the file is missing; return a generated password."""
    import bcrypt

    file = Path(conf.oslo_middleware.http_basic_auth_user_file)
    given = os.environ.pop("PLACEMENT_PASSWORD", "")
    if not given and file.exists():
        return None
    if not given and not _is_sqlite(conf):
        # Several containers of one service would generate different passwords.
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


def _greeting(conf, generated: str | None):
    """Yield the text for the log, with the address published by `--publish 127.0.0.1:8778:8778`."""
    from placement import extension

    yield f"Placement serves on {ADDRESS}, if the port is published there.\n"
    if generated:
        yield f'The user is "{USER}", the password "{generated}"; it is not shown again.  Try:\n\n'
        credentials = f"{USER}:{generated}"
        yield f"  curl -u {credentials} -H 'OpenStack-API-Version: placement latest' {ADDRESS}/resource_providers\n\n"
    for each in extension.enabled(conf):
        if each.greeting:
            yield each.greeting(conf, ADDRESS)


if __name__ == "__main__":
    main(sys.argv[1:])
