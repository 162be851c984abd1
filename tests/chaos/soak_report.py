"""The report of a soak, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .soak_kills import Kill
from .soak_plan import Plan
from .soak_verdict import Verdict


@dataclass(frozen=True)
class Run:
    """The inputs and the results of one run."""

    seed: int
    plan: Plan
    events: int
    """Events that happened; fewer than planned where the time ran out."""
    verdict: Verdict
    kills: Sequence[Kill]
    answers: Counter[str]
    killing_seconds: float
    rest_seconds: float

    @property
    def is_good(self) -> bool:
        """Whether there are no faults. Duplicates are not faults: they are only counted."""
        return not self.verdict.faults


def report(run: Run) -> str:
    """A table of figures, then the faults if there are any."""
    verdict, plan = run.verdict, run.plan
    bad = [subscription.kind for subscription in plan.subscriptions if subscription.kind != "good"]
    killed = _listed(Counter(kill.who for kill in run.kills))
    rows = {
        "events": f"{run.events}" + (f" of {plan.events}: the time was over" if run.events < plan.events else ""),
        "subscriptions": f"{len(plan.subscriptions)} of {len(plan.shares)} companies",
        "bad endpoints": f"{len(bad)}: {', '.join(bad)}",
        "kills": f"{len(run.kills)}: {killed}",
        "under kills, then at rest": f"{run.killing_seconds:.0f} s, {run.rest_seconds:.0f} s",
        "(event, subscription) that match": f"{verdict.expected}",
        "delivered": f"{verdict.delivered}",
        "parked, shown with their attempts": f"{verdict.parked}",
        "still waiting, shown with their attempts": f"{verdict.waiting}",
        "**missing**": f"**{sum(count for fault, count in verdict.faults.items() if 'missing' in fault)}**",
        "requests that arrived": f"{verdict.requests}, all signatures good"
        if not verdict.faults["requests with a bad signature"]
        else f"{verdict.requests}",
        "deliveries that took more than one request": f"{verdict.retried}",
        "duplicates": f"{verdict.duplicates} of {verdict.duplicated} deliveries; {verdict.unexplained} without a kill "
        "of a dispatcher or of PostgreSQL in between",
        "duplicates by who died between the two answers": _listed(verdict.after),
        "deliveries a second": f"{verdict.deliveries_a_second:.0f} on the whole, "
        f"{verdict.busiest_a_second:.0f} in the busiest ten seconds",
        "longest time without any delivery": f"{verdict.longest_gap_seconds:.1f} s",
        "what requests and imports ended with": _listed(run.answers),
        "seed": f"{run.seed}",
    }
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    if verdict.faults:
        lines += ["", "**Faults**", "", *(f"- {count} {fault}" for fault, count in verdict.faults.items())]
    return "\n".join(lines) + "\n"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
