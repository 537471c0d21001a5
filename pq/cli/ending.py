"""How a command ends: what is said of what stopped it, and its exit code, which is decided here alone.

Once a release is paid for, all that can go wrong ends with 3, whatever it is and wherever: nobody may take for unspent
what was spent. Before that nothing does.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import click

from pq.core.budget.ledger import Ledger

UNSHOWN = 3
INTERRUPTS = click.Abort, KeyboardInterrupt


class UnprintedError(click.ClickException):
    """An answer that cannot be printed. readers: whether somebody may be told; who reads no further has had enough."""

    def __init__(self, error: OSError, what: str = "the answer") -> None:
        super().__init__(f"{what} cannot be printed: {error.strerror}")
        self.readers = error.errno != errno.EPIPE


@dataclass
class Payment:
    """What a command has paid for: nothing before it charges an account or, without one, before values are out."""

    released: bool = False
    _account: Ledger | None = None

    def taken_from(self, account: Ledger | None) -> None:
        """Say which account will be charged."""
        self._account = account

    @property
    def is_made(self) -> bool:
        """Whether there is no way back. An account knows what it was charged, whatever came right after."""
        return self.released or (self._account is not None and self._account.receipt is not None)

    def told(self, error: BaseException) -> click.ClickException:
        """What stopped a command after this, in words."""
        error = unusable(error) if isinstance(error, OSError) else error
        words = "it was interrupted" if isinstance(error, INTERRUPTS) else str(error)
        what = error.message if isinstance(error, click.ClickException) else words
        done = "the release was made and paid for, but not all of it was shown"
        return click.ClickException(f"{done if self.released else 'the release was paid for, but not made'}: {what}")


def unusable(error: OSError, path: Any = None, use: str = "used") -> click.ClickException:
    """What ends a command whose file cannot be opened, read or written: exit code 1. path: of it, if known better."""
    where = error.filename if path is None else path
    return click.ClickException(str(error) if where is None else f"{where} cannot be {use}: {error.strerror or error}")


def ended(command: Callable[[], Any], payment: Payment) -> int:
    """Run a command, say what stopped it, and return the exit code. Raises an error that is none of the caller's, and
    none of a file's, where nothing was paid for."""
    error = _stopped(command)
    with _deaf():  # to a second interrupt: the answer to the first is on its way
        return _code_after(error, payment)


def _code_after(error: BaseException | None, payment: Payment) -> int:
    """The exit code of a command that ended so, once that is said."""
    try:
        if error is None:
            return 0
        if payment.is_made:
            return _said(payment.told(error), UNSHOWN)
        if isinstance(error, OSError):
            return _said(unusable(error), 1)
        if isinstance(error, click.ClickException):
            return _said(error, error.exit_code)
        if isinstance(error, INTERRUPTS):
            return _said(error, 1)
        raise error
    finally:
        _let_go()


@contextmanager
def _deaf() -> Iterator[None]:
    """Within it nothing interrupts this process, where that can be had: in the main thread."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _stopped(command: Callable[[], Any]) -> BaseException | None:
    """What kept a command from its end, which is in what it prints, too. It returns the code where click ends it."""
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return UnprintedError(error) if error.errno in (errno.ENOSPC, errno.EPIPE) else error
    except BaseException as error:
        return error
    return SystemExit(code) if code else None


def _said(error: BaseException, code: int) -> int:
    """The code, once the error is said; one that cannot be said changes no code."""
    with suppress(BaseException):
        if isinstance(error, click.ClickException):
            if getattr(error, "readers", True):
                error.show()
        else:
            click.echo("Aborted!", err=True)
    return code


def _let_go() -> None:
    """What cannot be written goes nowhere, so that the interpreter ends without a word and with the code that it was
    told: it writes what is left in buffers once more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
