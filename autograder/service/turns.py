"""How much one student may send, beside the tries that a chapter gives: so much at once, and so much in vain.

A pack that is refused takes no try, nor does one that the network made the client send again; but each costs the server
its reading. What is counted here is forgotten when the server ends.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio

from autograder.service.receive import Refused

MOST_AT_ONCE = 3  # packs of one student on their way: each may take 20 MB of the disk
MOST_IN_VAIN = 30  # packs of one student within an hour that are no new hand-ins
_HOUR = 3600.0
_LOOK_AGAIN = 0.1  # seconds


class Turns:
    """Of each student the packs that are on their way, and when one came that was no new hand-in."""

    def __init__(self) -> None:
        self._on_the_way: Counter[str] = Counter()
        self._in_vain: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_IN_VAIN))

    @asynccontextmanager
    async def turn(self, student: str, most_seconds: float) -> AsyncIterator[None]:
        """Wait until a pack of a student may come.

        Args:
            student: who sends it.
            most_seconds: how long to wait.

        Raises:
            Refused: too many of them were no new hand-ins, or too many are on their way.
        """
        in_vain = self._in_vain[student]
        if len(in_vain) == MOST_IN_VAIN and (wait := in_vain[0] + _HOUR - time.monotonic()) > 0:
            at = datetime.now().astimezone() + timedelta(seconds=wait)
            raise Refused(
                f"{MOST_IN_VAIN} packs of yours were no new hand-ins within the last hour, and more are not looked at: "
                f"try again after {at:%H:%M:%S} {at.tzname()}",
                429,
                int(wait) + 1,
            )
        until = time.monotonic() + most_seconds
        while self._on_the_way[student] >= MOST_AT_ONCE:
            if time.monotonic() > until:
                raise Refused("other hand-ins of yours are on their way and do not come to their end: try again", 408)
            await anyio.sleep(_LOOK_AGAIN)
        self._on_the_way[student] += 1
        try:
            yield
        finally:
            self._on_the_way[student] -= 1

    def note_in_vain(self, student: str) -> None:
        """Note that a pack of a student was no new hand-in."""
        self._in_vain[student].append(time.monotonic())
