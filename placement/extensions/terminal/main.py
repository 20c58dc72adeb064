"""The entry point of ``placement-ask``."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial

from placement.extensions.terminal import address, answer, commands, watching
from placement.extensions.terminal.address import UsageError
from placement.extensions.terminal.answer import INTERRUPTED, REFUSED, SERVICE, UNREAD, USAGE
from placement.extensions.terminal.client import Client, ServiceError
from placement.extensions.terminal.releasing import Declined

_BAD_REQUEST = 400
#: Exceptions raised for a malformed document by the functions that show it.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, print its output, and return the exit code."""
    # No KeyboardInterrupt: Python ignores exceptions in some callbacks, so the process could continue.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    arguments = commands.parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names may contain characters that the terminal cannot show
    try:
        service = address.find(arguments, os.environ)
        ask = partial(arguments.ask, Client(service), arguments)
        if getattr(arguments, "watch", None):
            watching.check(arguments)
            watching.watch(ask, arguments.watch)
        return answer.show(ask(), as_json=arguments.json, follows=getattr(arguments, "follow", False))
    except UsageError as error:
        return _report_failure(str(error), USAGE)
    except Declined as error:
        return _report_failure(str(error), REFUSED)
    except ServiceError as error:
        return _report_failure(str(error), USAGE if error.status == _BAD_REQUEST else SERVICE)
    except _MALFORMED as error:
        reason = f"{type(error).__name__} {error}"
        return _report_failure(f"The response of {service.url} is not from a Placement service ({reason}).", SERVICE)
    except OSError as error:
        # Otherwise Python would try to write the remaining output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of the output, such as head, has closed it
            return UNREAD
        return _report_failure(f"The output cannot be written: {error.strerror}.", SERVICE)


def _report_failure(sentence: str, code: int) -> int:
    answer.say(sentence)
    return code


if __name__ == "__main__":
    sys.exit(main())
