"""The words of the trade stay: what property managers do not say comes back into no page (docs/glossary.md)."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "console"
# Phrases that people read once, as templates and code spelled them.
OLD = (
    "Upkeep", "Nobody has", "Nobody</", "Who does", "Or take them away", "need you", "needs you", "kept waiting",
    "on their way to ready", "'Go on'", '"Go on"', ">Go on<", "Back to Open", ">Cancel it<", "Complete it",
    "What was reported", "What happened", "Who did what", "Just now", "have been quiet", "May enter", "Not alone",
    "For whom", "us: staff saw it", "Narrower kind", "Which of several", "Correct what it says", "notice back",
    "Goes to", "Fed by", "Residencies</", "'Residencies'", "nobody yet", "not leased", "Move to", "what is looked at",
    "Look at it", "Walk it", "Walk on", "Plan one", "All of them", "Stop working with", "Not checked",
    "What stands out", "Lies at", "Keys that work", "Mint a", "Mint the", "Make the endpoint", "' is made",
    "} is made", "Integrations notified",
    "waits any more", "All its deliveries go", "exactly that", "comment is there", "It is yours now", "Goes by itself",
    "Colours", "Pages are", "The same again", "Left out", ">Show<", "Look again", "would stand here",
    "as it stands.", "which</a>", "for a context",
)  # fmt: skip
TEXT = re.compile(r"\{#.*?#\}|\"\"\".*?\"\"\"|^\s*#.*?$", re.DOTALL | re.MULTILINE)


def test_no_old_phrase_is_on_a_page() -> None:
    files = [*ROOT.glob("**/templates/*.html"), *ROOT.glob("areas/**/*.py"), *ROOT.glob("kit/*.py")]
    texts = {path.relative_to(ROOT): TEXT.sub("", path.read_text()) for path in files}
    returned = [(str(path), phrase) for path, text in texts.items() for phrase in OLD if phrase in text]
    assert len(files) > 200 and returned == []
