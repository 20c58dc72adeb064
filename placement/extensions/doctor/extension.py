"""Declaration of the extension ``doctor``: its command and its metric."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement.extension import Extension

if TYPE_CHECKING:
    from placement.metrics.instruments import Instruments, Subscription


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from placement.extensions.doctor import command

    command.add_command(commands)


def _metrics(instruments: Instruments) -> Iterable[Subscription]:
    from placement.extensions.doctor import metrics

    return metrics.subscriptions(instruments)


EXTENSION = Extension(name="doctor", commands=_add_commands, metrics=_metrics)
