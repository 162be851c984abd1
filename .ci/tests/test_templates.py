"""Long lines of templates are broken where a page stays the same, and nowhere else."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import jinja2
import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = runpy.run_path(str(ROOT / ".ci/templates.py"))
FILL = "word " * 30


def formatted(text: str) -> str:
    broken: str = TEMPLATES["formatted"](text)
    return broken


def rendered(text: str) -> str:
    """What the console's environment makes of it, with blanks beside blocks left out and others as one."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=True)
    html = environment.from_string(text).render(one=1, name="Ada", words=["a", "b"])
    return re.sub(r" ?(</?(?:div|p|ul|li|td|tr)\b[^>]*>) ?", r"\1", re.sub(r"\s+", " ", html)).strip()


@pytest.mark.parametrize(
    "text",
    [
        f"<p>{FILL}{FILL}</p>\n",
        f"<ul>{'<li>{{ one }} <b>{{ name }}</b></li>' * 9}</ul>\n",
        "<tr>" + "<td class='{{ name }}'>{% if one %}{{ name }}{% else %}-{% endif %}</td>" * 4 + "</tr>\n",
        "{% for w in words %}"
        + "<span>{{ w }}</span>" * 3
        + " {% if one %}<i>{{ one }}</i>{% endif %} {% if not one %}x"
        "{% endif %} and <b>more</b> {% endfor %}{% if one %}<div>{{ name }}</div>{% endif %}<div>{{ one }}</div>\n",
        "{{ '" + FILL + "' ~ name ~ \"" + FILL + "it's\" }}\n",
        '<a class="btn small" href="/x?{{ name }}={{ one }}" title="'
        + FILL
        + '"{% if one %} hidden{% endif %}>go</a>\n',
    ],
)
def test_a_page_is_the_same_and_a_second_time_changes_nothing(text: str) -> None:
    broken = formatted(text)
    assert all(len(line) <= 140 or FILL in line for line in broken.splitlines())
    assert broken != text and formatted(broken) == broken
    assert rendered(broken) == rendered(text)


@pytest.mark.parametrize(
    "text",
    [
        "<b>" + "x" * 200 + "</b>\n",
        f"<pre>{FILL}{FILL}</pre>\n",
        "{% for w in words %}short{% endfor %}\n",
    ],
)
def test_what_fits_and_what_keeps_its_blanks_stays(text: str) -> None:
    assert formatted(text) == text


def test_what_keeps_its_blanks_by_its_style_keeps_them() -> None:
    assert f">{FILL}{FILL}<" in formatted(f'<p class="words">{FILL}{FILL}</p>\n')


def test_a_line_that_is_too_long_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "console/console/areas/x/templates"
    folder.mkdir(parents=True)
    (folder / "a.html").write_text(f"<p>\n<b>{'x' * 200}</b>\n{FILL}\n")
    assert TEMPLATES["main"]([str(tmp_path)]) == 1
    assert [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "console/console/areas/x/templates/a.html:2",
        "console/console/areas/x/templates/a.html:3",
    ]
    assert TEMPLATES["main"](["write", str(tmp_path)]) == 1
    assert "a.html:3" not in capsys.readouterr().out
