"""Ctrl-C, answered between two steps.

Python raises KeyboardInterrupt wherever the main thread happens to be. In somebody's `__del__` that is lost with a
traceback on the screen, and in the middle of a library's cleaning up it leaves behind what nobody closes.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """What is known of Ctrl-C while it is held."""

    came = False
    """whether there was one"""

    def __init__(self) -> None:
        self.wake: Callable[[], object] = lambda: None
        """called at each one, in the signal's handler"""
        self._raises = False

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise KeyboardInterrupt, once, in what runs inside, as if it were not held: for what is long under way."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        self.wake()
        if self._raises:
            self._raises = False  # a second one would interrupt the cleaning up after the first
            raise KeyboardInterrupt


@contextmanager
def interrupts_held() -> Iterator[Interrupts]:
    """Note Ctrl-C, each one, instead of raising KeyboardInterrupt; for the main thread.

    Once there was one, later ones are ignored for good: the program is ending, and has yet to tell how far it got.

    Yields:
        What is known of it, to be looked at between two steps.
    """
    interrupts = Interrupts()
    before, hook = signal.signal(signal.SIGINT, interrupts._interrupt), sys.unraisablehook

    def quiet(lost: "sys.UnraisableHookArgs") -> None:
        # It was raised where nothing can be raised; that it came is known all the same.
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            hook(lost)

    sys.unraisablehook = quiet
    try:
        yield interrupts
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.SIG_IGN if interrupts.came else before)


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C. Processes started meanwhile always do: it is this one that stops them, in good order."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
