"""The live regions of one page: elements that fetch themselves anew when a record changes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from markupsafe import Markup

from console.kit import live


@dataclass(frozen=True, slots=True)
class LiveRegions:
    topics: set[str] = field(default_factory=set)
    """What the regions of the page and of its panels are about."""
    since: float = field(default_factory=time.time)
    """When the page was begun."""

    def attributes(self, region: str, topics: tuple[str, ...], address: str, *, is_panel: bool) -> Markup:
        """The attributes of an element that fetches itself anew. address: of its page or panel."""
        self.topics.update(topics)
        when = ", ".join(f"{event} from:body" for event in (*topics, "live-again"))
        select = "" if is_panel else Markup(' hx-select="#{}"').format(region)
        return Markup(
            'id="{}" hx-get="{}" hx-trigger="{}"{} hx-target="this" hx-swap="outerMorph" hx-status:4xx="swap:none"'
            ' hx-status:5xx="swap:none" hx-headers=\'{{"X-Live": "1"}}\''
        ).format(region, address, when, select)

    @property
    def address(self) -> str:
        """Where the page listens; empty for one without live regions."""
        return live.address(self.topics, self.since) if self.topics else ""
