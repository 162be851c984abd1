"""Who uses a browser: nobody, a member of staff or an administrator, as the session of its cookie says."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field

from console.kit.browser_secret import BrowserSecret
from makeready.common.v1 import options_pb2
from makeready.identity.v1 import sessions_pb2

NOBODY, STAFF, ADMINISTRATOR = "nobody", "staff", "administrator"
PEOPLE = frozenset({STAFF, ADMINISTRATOR})
ADMINISTRATORS = frozenset({ADMINISTRATOR})
EVERYBODY = frozenset({NOBODY, STAFF, ADMINISTRATOR})
_KINDS = {options_pb2.KIND_STAFF: STAFF, options_pb2.KIND_ADMINISTRATOR: ADMINISTRATOR}


@dataclass
class BrowserSession:
    """The session of one browser. `text` is empty and `who` None while nobody is signed in."""

    now: Callable[[], datetime.datetime]
    text: str = ""
    who: sessions_pb2.Session | None = None
    browser: BrowserSecret = field(default_factory=lambda: BrowserSecret("", 0))
    """What the keys of its person are made from, and outlives the session."""
    is_known: bool = False
    """Whether the gateway has said who it is, or that it is nobody."""
    was_here: bool = False
    """Whether the browser had that secret already: it has had a page of this console."""
    was_displaced: bool = False
    """Whether the session has ended because its person began newer ones."""
    has_left: bool = False
    """Whether the cookie names a sandbox that its person may not work in any longer. `who` is in the live company."""

    @property
    def kind(self) -> str:
        return NOBODY if self.who is None else _KINDS[self.who.kind]

    @property
    def person(self) -> sessions_pb2.Session:
        """Who is signed in. For pages that nobody else may open."""
        assert self.who is not None, "nobody is signed in"
        return self.who

    @property
    def secret(self) -> str:
        """What the messages of its pages are sealed with."""
        return self.text or self.browser.text

    @property
    def can_confirm(self) -> bool:
        """Whether the actions that ask for a confirmation are open now."""
        return self.who is not None and self.who.step_up_until.ToDatetime(datetime.UTC) > self.now()

    @property
    def idle_seconds(self) -> int:
        """How long the session lasts from now on if nothing is done with it."""
        person = self.person
        end = min(person.idle_ends_at.seconds, person.ends_at.seconds or person.idle_ends_at.seconds)
        return max(0, int(end - self.now().timestamp()))
