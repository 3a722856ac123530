"""Who somebody is on a JupyterHub, whose service the server then is: by the Hub's own tokens, and its OAuth.

The Hub decides who may come here: whoever has the scope to access this service. Instructors are those in the class's
group, `formgrade-COURSE`, as for nbgrader's formgrader.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from jupyterhub.services.auth import HubOAuth
from tornado.web import HTTPError

from autograder.course.curriculum import CourseError
from autograder.course.owner import is_folder_name
from autograder.service.people import Identify, Person
from autograder.service.receive import Refused

_NEEDED = ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX", "JUPYTERHUB_SERVICE_URL", "JUPYTERHUB_CLIENT_ID")
# So long what the Hub said of a token holds: whoever is taken out of a group is out a minute later.
_SECONDS = 60


@dataclass(frozen=True)
class Hub:
    """The Hub that a server is a service of.

    Attributes:
        auth: speaks with it.
        group: of instructors.
        host: the address to listen at.
        port: the port to listen at.
        prefix: what all addresses of the service begin with; it begins and ends with a slash.
        secure: whether browsers reach it by https.
    """

    auth: HubOAuth
    group: str
    host: str
    port: int
    prefix: str
    secure: bool


def from_environment(group: str, environment: Mapping[str, str] = os.environ) -> Hub:
    """The Hub, from what it tells its services.

    Raises:
        CourseError: it tells nothing: this is no service of a Hub.
    """
    if missing := [name for name in _NEEDED if not environment.get(name)]:
        raise CourseError(f"--hub is for a service that a JupyterHub starts, and {missing[0]} is not set: docs/hub.md")
    address = urlsplit(environment["JUPYTERHUB_SERVICE_URL"])
    if address.scheme != "http" or not address.hostname or not address.port:
        raise CourseError("the service's url in jupyterhub_config.py should be such as http://127.0.0.1:9001")
    auth = HubOAuth(cache_max_age=_SECONDS)
    public = environment.get("JUPYTERHUB_PUBLIC_URL", "")
    return Hub(auth, group, address.hostname, address.port, auth.base_url, public.startswith("https://"))


def by_hub(hub: Hub) -> Identify:
    """Whose a token is, as the Hub knows it: of a notebook server, of a browser, or one made by hand."""

    async def identify(token: str) -> Person:
        if not token.isascii() or not token.isprintable():
            raise Refused("this is no token of the Hub", 401)
        told = await _asked(hub.auth.user_for_token(token, sync=False))
        if told is None:
            raise Refused("the Hub does not know this token, or it has expired: restart your server on the Hub", 401)
        name = str(told.get("name", ""))
        if told.get("kind", "user") != "user" or not is_folder_name(name):
            raise Refused("only people can be in a class, by a name that a folder can have", 403)
        if not hub.auth.check_scopes(hub.auth.access_scopes, told):
            raise Refused("the Hub does not let you into this class: ask your instructor", 403)
        return Person(name, bool(told.get("admin")) or hub.group in told.get("groups", []))

    return identify


def challenge(hub: Hub) -> tuple[str, str]:
    """A secret that the Hub is shown when a browser comes back from it, and what it is told of that before."""
    verifier, told, _ = hub.auth.generate_pkce_code_challenge("S256")
    return verifier, told


def sign_in_address(hub: Hub, state: str, challenge: str) -> str:
    """Where the Hub asks a browser who it is.

    Args:
        hub: the Hub.
        state: comes back with the browser.
        challenge: see `challenge`.
    """
    asked = {"client_id": hub.auth.oauth_client_id, "redirect_uri": hub.auth.oauth_redirect_uri}
    asked |= {"response_type": "code", "state": state, "code_challenge": challenge, "code_challenge_method": "S256"}
    return f"{hub.auth.oauth_authorization_url}?{urlencode(asked)}"


async def token_of(hub: Hub, code: str, verifier: str) -> str:
    """The token that the Hub gives for the code that a browser came back with.

    Raises:
        Refused: it gives none.
    """
    return await _asked(hub.auth.token_for_code(code, code_verifier=verifier, sync=False))


async def _asked(question: Any) -> Any:
    try:
        return await question
    except HTTPError as error:
        raise Refused("the Hub does not answer: try again in a minute; your file stays with you", 503) from error
