"""Who somebody is: what a token says, and the session of a browser that has shown one.

A session is a random cookie behind which a token stands, in this process's memory. Each request asks anew whose the
token is, so that one that was taken back, or has expired, ends its sessions too.
"""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from anyio.to_thread import run_sync
from sqlalchemy import Engine

from autograder.service import store as state
from autograder.service.receive import Refused

SECONDS = 12 * 3600  # that a browser stays signed in
_MOST_SESSIONS = 20_000


@dataclass(frozen=True)
class Person:
    """A student, by the name of their folder, or an instructor."""

    name: str
    teaches: bool = False


# Whose a token is; raises `Refused` if it is nobody's.
Identify = Callable[[str], Awaitable[Person]]


def by_token(store: Engine) -> Identify:
    """Whose a token is, as the class's own database knows it."""

    async def identify(token: str) -> Person:
        known = await run_sync(state.whose_token, store, token)
        if known is None:
            raise Refused("the server does not know this token: copy it again, whole, or ask your instructor", 401)
        if known.expires_at <= state.now():
            raise Refused(f"this token expired on {known.expires_at:%Y-%m-%d}: ask your instructor for a new one", 401)
        return Person(known.name, known.teaches)

    return identify


class Sessions:
    """What stands behind the cookies that browsers were given: of each its digest, a secret, and until when."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def begin(self, secret: str) -> str:
        """A new cookie for a secret."""
        cookie = secrets.token_urlsafe(32)
        self._known[_digest(cookie)] = (secret, time.monotonic() + self._seconds)
        while len(self._known) > _MOST_SESSIONS:
            self._known.popitem(last=False)
        return cookie

    def secret(self, cookie: str) -> str | None:
        """The secret behind a cookie; None if it is unknown or too old."""
        secret, until = self._known.get(_digest(cookie), ("", 0.0))
        return secret if time.monotonic() < until else None

    def end(self, cookie: str) -> None:
        """Forget a cookie."""
        self._known.pop(_digest(cookie), None)

    def proof(self, cookie: str) -> str:
        """What a form of this session's pages holds, and no other page can know."""
        return hmac.new(self._key, cookie.encode(errors="replace"), hashlib.sha256).hexdigest()

    def is_proof(self, cookie: str, proof: str) -> bool:
        """Whether a form is of this session's pages."""
        return hmac.compare_digest(self.proof(cookie).encode(), proof.encode(errors="replace"))


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
