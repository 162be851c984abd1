"""The plan of a soak: companies, subscriptions, bad endpoints, and the causes of events in each company."""

from __future__ import annotations

from dataclasses import dataclass

from .soak_endpoints import CLOSED_HOST, HOST, RENAMED_HOST

CREATED, CHANGED, MOVED = "ticket.created", "ticket.status_changed", "turn.status_changed"
COMPANIES_MAX = 20
# The events of a company's subscriptions, in turn. The last one's event never happens here.
HEARD = (
    (CREATED,),
    (CHANGED,),
    (CREATED, CHANGED),
    (MOVED,),
    (CREATED, MOVED),
    (CHANGED, MOVED),
    (MOVED,),
    (CHANGED,),
    (CHANGED, MOVED),
    ("vendor.hold",),
)
# Ways to be bad, each with the number of the subscription that has such an endpoint. Endpoints that use up the
# 10 s timeout at every attempt hear the rarest event; otherwise no run would reach the end of their ladders.
BAD = {
    "flaky": 0,  # 500 at the first attempt of each event, 200 from then on
    "broken": 1,  # always 500
    "resets": 1,  # takes the request, resets the connection
    "redirects": 1,
    "garbage": 1,  # its response is not HTTP
    "refuses": 1,  # its port is closed
    "renamed": 1,  # its certificate is for another name
    "slow": 1,  # 200 after two seconds
    "hangs": 3,  # never answers
    "trickles": 3,  # a byte now and then, for ever
}
DELIVERS = ("good", "flaky", "slow")  # kinds of endpoints that answer 2xx in the end
HOSTS = {"refuses": CLOSED_HOST, "renamed": RENAMED_HOST}
# The status changes behind each final status of a ticket: the final status implies the number of events.
CHAINS = {
    "Open": (),
    "On Hold": ("On Hold",),
    "In Progress": ("In Progress",),
    "Completed": ("In Progress", "Completed"),
}


@dataclass(frozen=True)
class Subscription:
    """One subscription; companies and their subscriptions are numbered from 0. run: distinguishes several runs."""

    run: str
    company: int
    number: int
    heard: tuple[str, ...]
    kind: str

    @property
    def path(self) -> str:
        return f"/{self.run}/{self.company}-{self.number}-{self.kind}"

    @property
    def destination_url(self) -> str:
        return f"https://{HOSTS.get(self.kind, HOST)}{self.path}"


@dataclass(frozen=True)
class Share:
    """The causes of events in one company."""

    imported: int
    """Tickets imported by a file; a second file changes the status of `changed` of them."""
    changed: int
    opened: int
    """Tickets opened and set to In Progress by requests; every other one is also completed."""
    moved: int
    """Move-ins by request, each followed by a notice."""

    @property
    def events(self) -> int:
        return self.imported + self.changed + 2 * self.opened + self.opened // 2 + 2 * self.moved


@dataclass(frozen=True)
class Plan:
    """The planned causes and subscriptions."""

    shares: tuple[Share, ...]
    subscriptions: tuple[Subscription, ...]

    @property
    def events(self) -> int:
        return sum(share.events for share in self.shares)


def planned(events: int, subscriptions: int, bad: int, name: str = "soak") -> Plan:
    """Raises ValueError where the numbers do not fit together."""
    companies = min(COMPANIES_MAX, max(1, subscriptions // len(HEARD)))
    if events // companies < 40:
        raise ValueError(f"at least {40 * companies} events are needed")
    kinds: dict[tuple[int, int], str] = {}
    for index, (kind, number) in enumerate(list(BAD.items())[:bad]):
        around = [(companies * index // bad + steps) % companies for steps in range(companies)]
        alike = [number, *(other for other, heard in enumerate(HEARD) if heard == HEARD[number])]
        places = [(company, other) for other in alike for company in around]
        free = [place for place in places if place not in kinds and place[0] + place[1] * companies < subscriptions]
        if free:
            kinds[free[0]] = kind
    if len(kinds) < bad:
        raise ValueError("there are too few subscriptions for so many bad endpoints, or too few ways to be bad")
    planned_subscriptions = []
    for index in range(subscriptions):
        company, number = index % companies, index // companies
        kind = kinds.get((company, number), "good")
        planned_subscriptions.append(Subscription(name, company, number, HEARD[number % len(HEARD)], kind))
    shares = [_share(events // companies + (index < events % companies)) for index in range(companies)]
    return Plan(tuple(shares), tuple(planned_subscriptions))


def _share(events: int) -> Share:
    moved, opened = max(1, events // 200), max(2, events // 50)
    created = events - 2 * moved - 2 * opened - opened // 2
    return Share(created - created // 5, created // 5, opened, moved)
