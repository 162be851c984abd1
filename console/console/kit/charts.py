"""Charts as SVG, made here and readable without script. Numbers stand in attributes: pages allow no inline style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 760


def spark(values: Sequence[int], height: int = 26) -> Markup:
    """A row of small bars beside a number that says the same. A value of 0 is a dot of the line on which they stand."""
    most, step = max(values, default=0) or 1, 6
    bars = "".join(
        f'<rect class="{"tone" if value else "soft"}" x="{index * step}" y="{height - high:g}" width="4" '
        f'height="{high:g}" rx="1"/>'
        for index, value in enumerate(values)
        if (high := round(max(3.0, value / most * height) if value else 1.5, 1))
    )
    width = max(len(values), 1) * step
    return _svg(f'<svg class="bars spark" viewBox="0 0 {width} {height}" aria-hidden="true">{bars}</svg>')


def bar(value: int, most: int) -> Markup:
    """One bar of a list whose words and numbers stand beside it."""
    width = round(max(4.0, 100 * value / most), 1) if value and most else 0
    full = '<rect class="soft" width="100" height="18" rx=".6" ry="3" opacity=".45"/>'
    part = f'<rect class="tone" width="{width:g}" height="18" rx=".6" ry="3"/>' if width else ""
    box = 'viewBox="0 0 100 18" preserveAspectRatio="none" aria-hidden="true"'
    return _svg(f'<svg class="bars bar" {box}>{full}{part}</svg>')


def columns(
    good: Sequence[int],
    bad: Sequence[int],
    labels: Sequence[str],
    description: str,
    marks: Sequence[tuple[int, str]] = (),
    words: tuple[str, str] = ("succeeded", "failed"),
) -> Markup:
    """Stacked columns, the good ones below. labels: of each column's tooltip; marks: (column, text) on the axis; words:
    for the good and for the bad."""
    most = _round_number(max((a + b for a, b in zip(good, bad, strict=True)), default=0))
    top, base = 20, 148
    right = WIDTH - 36  # the numbers of the lines stand beside the columns
    step = (right - 8) / max(len(good), 1)
    width = min(step * 0.7, 36)
    scale = (base - top) / most
    parts = [f'<line x1="0" y1="{base}.5" x2="{right}" y2="{base}.5"/>']
    for value in (most // 2, most):
        y = base - value * scale
        parts.append(f'<line x1="0" y1="{y:g}" x2="{right}" y2="{y:g}"/>')
        parts.append(f'<text x="{WIDTH - 2}" y="{y + 4:g}" text-anchor="end">{value:,}</text>')
    for index, (ok, no) in enumerate(zip(good, bad, strict=True)):
        x = 4 + index * step
        high, more = ok * scale, no * scale
        title = f"<title>{escape(labels[index])}: {ok} {words[0]}, {no} {words[1]}</title>"
        inner = (
            f'<rect class="ok" x="{x:.1f}" y="{base - high:.1f}" width="{width:.1f}" height="{high:.1f}" rx="1.5"/>'
            if ok
            else ""
        )
        if no:
            y = base - high - more - (2 if ok else 0)
            inner += f'<rect class="no" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{more:.1f}" rx="1.5"/>'
        parts.append(f"<g>{title}{inner}</g>" if inner else "")
    parts += [f'<text x="{4 + index * step:.1f}" y="167">{escape(text)}</text>' for index, text in marks]
    label = escape(description)
    return _svg(f'<svg class="bars" viewBox="0 0 {WIDTH} 176" role="img" aria-label="{label}">{"".join(parts)}</svg>')


def _round_number(most: int) -> int:
    """The least even number of one digit and zeros, or 12, 14, 16 or 18 and zeros, that is not less than `most`."""
    size: int = 10 ** max(len(str(most)) - 2, 0)
    return next(
        factor * size for factor in (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 40, 60, 80, 100) if factor * size >= most
    )


def spans(rows: Sequence[tuple[str, float, float]], total: float, unit: str) -> Markup:
    """A bar a row on one scale: (label, start, length)."""
    scale = 320 / (total or 1)
    parts = []
    for index, (label, start, length) in enumerate(rows):
        y, x, wide = index * 22, 80 + start * scale, max(length * scale, 1)
        parts.append(
            f'<text x="0" y="{y + 16}">{escape(label)}</text>'
            f'<rect class="tone" x="{x:.1f}" y="{y + 6}" width="{wide:.1f}" height="12" rx="2"/>'
            f'<text x="{min(x + wide + 6, 420):.1f}" y="{y + 16}">{length:g} {escape(unit)}</text>'
        )
    words = ", ".join(f"{label} {length:g}" for label, _, length in rows)
    label = escape(f"Of {total:g} {unit}: {words}.")
    box = f"0 0 480 {max(len(rows), 1) * 22 + 4}"
    return _svg(f'<svg class="bars" viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>')


@dataclass(frozen=True, slots=True)
class Month:
    """A column of `consumption`. label: its tooltip. None: nothing is known."""

    label: str
    value: float | None
    estimated: float = 0.0
    """How much of the value was estimated."""
    before: float | None = None
    """The value of the same month a year before."""
    cost: float | None = None


def consumption(
    months: Sequence[Month], description: str, unit: str, marks: Sequence[tuple[int, str]], width: int = WIDTH
) -> Markup:
    """Columns of months with those of the year before behind them, estimated parts hatched, and the cost as a line.

    marks: (column, text) on the axis.
    """
    top, base, start, right = 26, 186, 4, width - 56
    amounts = [amount for month in months for amount in (month.value, month.before) if amount is not None]
    most, least = _ceiling(max([*amounts, 0.0])), 0.0 - _ceiling(-min([*amounts, 0.0]), empty=0.0)
    scale = (base - top) / (most - least)
    zero = base + least * scale
    step = (right - start) / max(len(months), 1)
    wide, narrow = step * 0.86, step * 0.5
    parts = [
        '<defs><pattern id="estimated" width="6" height="6" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)">'
        '<rect class="card-fill" width="6" height="6"/><path class="hatch" d="M0 0V6M3 0V6"/></pattern></defs>',
        f'<text x="{start}" y="12">{escape(unit)}</text>',
    ]
    for value in dict.fromkeys((least, 0.0, most / 2, most)):
        y = zero - value * scale
        parts.append(f'<line x1="{start}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{right + 6}" y="{y + 4:.1f}">{_short(value)}</text>')
    for index, month in enumerate(months):
        x = start + (index + 0.5) * step
        inner = ""
        if month.before:
            inner += _column("soft", x - wide / 2, wide, zero, month.before * scale)
        if month.value:
            inner += _column("tone", x - narrow / 2, narrow, zero, month.value * scale)
            if month.estimated:
                part = min(month.estimated / month.value, 1.0) * month.value * scale
                inner += _column("estimated", x - narrow / 2, narrow, zero - (month.value * scale - part), part)
        elif month.value is None:
            inner += f'<text class="gap" x="{x:.1f}" y="{zero - 5:.1f}" text-anchor="middle">?</text>'
        shade = f'<rect class="reach" x="{x - step / 2:.1f}" y="{top}" width="{step:.1f}" height="{base - top}"/>'
        parts.append(f"<g>{shade}<title>{escape(month.label)}</title>{inner}</g>")
    parts.append(_cost_line(months, start, step, top, base))
    parts += [
        f'<text x="{start + index * step + 2:.1f}" y="{base + 19}">{escape(text)}</text>' for index, text in marks
    ]
    label = escape(description)
    box = f"0 0 {width} {base + 28}"
    return _svg(f'<svg class="bars months" viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>')


def _column(kind: str, x: float, wide: float, zero: float, high: float) -> str:
    y, height = (zero - high, high) if high >= 0 else (zero, -high)
    paint = 'class="estimated" fill="url(#estimated)"' if kind == "estimated" else f'class="{kind}"'
    return f'<rect {paint} x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{max(height, 0.5):.1f}" rx="1.5"/>'


def _cost_line(months: Sequence[Month], start: float, step: float, top: float, base: float) -> str:
    """The cost on a scale of its own, broken where it is not known."""
    costs = [month.cost for month in months if month.cost is not None]
    most = max([*costs, 0.0])
    if not most:
        return ""
    path, dots, is_on = "", "", False
    for index, month in enumerate(months):
        if month.cost is None:
            is_on = False
            continue
        x, y = start + (index + 0.5) * step, base - max(month.cost, 0.0) / most * (base - top) * 0.92
        path += f"{'L' if is_on else 'M'}{x:.1f} {y:.1f}"
        dots += f'<circle class="cost" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>'
        is_on = True
    return f'<path class="cost" d="{path}"/>{dots}'


def _ceiling(most: float, empty: float = 1.0) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not less than `most`; `empty` for nothing."""
    if most <= 0:
        return empty
    size = 10.0 ** math.floor(math.log10(most))
    return next(factor * size for factor in (1, 1.5, 2, 3, 5, 8, 10, 20) if factor * size >= most * 0.999)


def _short(value: float) -> str:
    """A value of an axis: "1.5k"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:,g}"


@dataclass(frozen=True, slots=True)
class Span:
    """The parts of `life`, from 0 to 1 of the whole."""

    today: float
    warranty: float
    begin: str
    end: str


def life(span: Span, description: str, *, is_old: bool) -> Markup:
    """A bar from an asset's installation to its end, with its warranty below and today's mark."""
    start, width = 2, 556
    past, covered = width * span.today, width * span.warranty
    x = start + past
    anchor = "end" if span.today > 0.9 else "start" if span.today < 0.1 else "middle"
    parts = [
        f'<rect class="soft" x="{start}" y="22" width="{width}" height="14" rx="7"/>',
        f'<rect class="{"no" if is_old else "tone"}" x="{start}" y="22" width="{max(past, 8):.1f}" height="14" '
        'rx="7"/>',
        f'<rect class="ok" x="{start}" y="41" width="{covered:.1f}" height="5" rx="2.5"/>' if span.warranty else "",
        f'<path class="today" d="M{x:.1f} 17V50"/><text x="{x:.1f}" y="12" text-anchor="{anchor}">today</text>',
        f'<text x="{start}" y="64">{escape(span.begin)}</text>',
        f'<text x="{start + width}" y="64" text-anchor="end">{escape(span.end)}</text>',
    ]
    label = escape(description)
    return _svg(f'<svg class="bars" viewBox="0 0 560 70" role="img" aria-label="{label}">{"".join(parts)}</svg>')


def shares(parts: Sequence[tuple[str, int]], height: int = 10) -> Markup:
    """One bar of parts side by side, beside words that say the same: (class, count)."""
    total, x, inner = sum(count for _, count in parts) or 1, 0.0, ""
    for kind, count in parts:
        wide = 160 * count / total
        inner += (
            f'<rect class="{escape(kind)}" x="{x:.1f}" y="0" width="{wide:.1f}" height="{height}"/>' if count else ""
        )
        x += wide
    box = f'viewBox="0 0 160 {height}" preserveAspectRatio="none"'
    return _svg(f'<svg class="bars shares" {box} aria-hidden="true">{inner}</svg>')


def _svg(text: str) -> Markup:
    """Numbers, and texts that were escaped above."""
    return Markup(text)  # noqa: S704
