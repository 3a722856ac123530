"""A browser's or program's connection to the server, which ends when nothing comes of it.

uvicorn waits for ever for a request that was only begun; a thousand of those, and nobody else could connect.
"""

import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20  # for a request to begin; what is sent with it has limits of its own
_MANY = 65_536


class Connection(H11Protocol):
    """A connection that is looked at again and again, and closed if no request has begun since the last time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._look(None)

    def _look(self, before: object) -> None:
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if idle and before == (self.cycle, idle):
            self.transport.close()
        else:
            self.loop.call_later(SECONDS, self._look, (self.cycle, idle))


def allow_many() -> None:
    """Let this process have many connections, if the system allows it; shells often begin with 1,024 files."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if most == resource.RLIM_INFINITY else min(most, _MANY)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), most))
