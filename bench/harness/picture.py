"""docs/performance.svg: the CPU of each request on every side, as bars; the same results give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from harness.measure import Result
from harness.sides import OURS

# Colours by what they paint, in light and in dark. Text is on the ground alone, never on a bar.
COLOURS = {
    "ground": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "quiet": ("#59636e", "#9198a1"),
    "ours": ("#0969da", "#4493f8"),
    "usual": ("#6e7781", "#8b949e"),
    "floor": ("#8b949e", "#6e7681"),
}
MARGIN, COLUMN, GAP = 24, 430, 28
LABEL, BAR_MAX = 78, 170
HEAD, TITLE, LINE, BAR, BETWEEN = 74, 20, 17, 11, 14
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def draw(results: Sequence[Result]) -> str:
    """The whole picture: a column for each number of connections, in it a group of bars for each workload. The bar of
    the usual choice is as long in every group."""
    columns = {result.connections: [] for result in results}  # type: dict[int, list[Result]]
    for result in results:
        columns[result.connections].append(result)
    groups = max(len(column) for column in columns.values())
    sides = len(results[0].blocks)
    width = 2 * MARGIN + len(columns) * COLUMN + (len(columns) - 1) * GAP
    height = HEAD + groups * (TITLE + sides * LINE + BETWEEN) + MARGIN
    usual = list(results[0].blocks)[1]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-labelledby="title about" font-family="{FONT}" font-size="12">',
        '<title id="title">CPU time of a request</title>',
        f'<desc id="about">{escape(_description(results, usual))}</desc>',
        f"<style>{_style()}</style>",
        f'<rect class="ground" width="{width}" height="{height}" rx="8"/>',
        f'<text class="text" x="{MARGIN}" y="32" font-size="16" font-weight="600">CPU time of a request, all server '
        "processes, milliseconds: shorter is better</text>",
    ]
    for place, (connections, column) in enumerate(columns.items()):
        lines += _column(column, connections, MARGIN + place * (COLUMN + GAP), usual)
    return "\n".join((*lines, "</svg>", ""))


def _column(column: Sequence[Result], connections: int, x: int, usual: str) -> Iterator[str]:
    many = f"{connections} connections" if connections > 1 else "one connection"
    yield f'<text class="quiet" x="{x}" y="58" font-size="13">{many}</text>'
    top = HEAD
    for result in column:
        yield f'<text class="text" x="{x}" y="{top + 13}" font-weight="600">{escape(result.workload.name)}</text>'
        top += TITLE
        whole = max(result.milliseconds(name) for name in result.blocks)
        for number, name in enumerate(result.blocks):
            kind = "ours" if name == OURS else "usual" if name == usual else "floor"
            cost = result.milliseconds(name)
            length = max(1.0, BAR_MAX * cost / whole)
            words = f"{cost:.2f}"
            weight = ""
            if name == OURS:
                words += f" · {result.ratio(OURS, usual):.1f} times less than {usual}"
                weight = ' font-weight="600"'
            base = top + number * LINE
            yield f'<text class="quiet" x="{x}" y="{base + BAR - 1}" font-size="11">{escape(name)}</text>'
            yield f'<rect class="{kind}" x="{x + LABEL}" y="{base}" width="{length:.1f}" height="{BAR}" rx="2"/>'
            yield (
                f'<text class="text" x="{x + LABEL + length + 6:.1f}" y="{base + BAR - 1}" font-size="11"{weight}>'
                f"{escape(words)}</text>"
            )
        top += len(result.blocks) * LINE + BETWEEN


def _style() -> str:
    light, dark = ("".join(f".{name}{{fill:{pair[n]}}}" for name, pair in COLOURS.items()) for n in (0, 1))
    return f"{light}@media (prefers-color-scheme: dark){{{dark}}}"


def _description(results: Sequence[Result], usual: str) -> str:
    """The figures in words, for those who do not see the picture."""
    return " ".join(
        f"{result.workload.name}, connections {result.connections}: "
        + ", ".join(f"{name} {result.milliseconds(name):.2f}" for name in result.blocks)
        + f"; {OURS} takes {result.ratio(OURS, usual):.1f} times less than {usual}."
        for result in results
    )
