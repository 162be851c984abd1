"""Addresses: where a sign-in may lead, and which record has a page."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from urllib.parse import quote, urlencode

# The page of a record as pages.py spells it, by the record's kind in the audit log and in events.
PAGES = {
    "administrator": "/settings/administrators/{administrator_id}",
    "staff": "/staff/{staff_id}",
    "key": "/keys/{key_id}",
    "turn": "/turns/{turn_id}",
    "turn_task": "/turn-tasks/{task_id}",
    "turn_template": "/turn-templates/{template_id}",
    "pm_task": "/pm-tasks/{pm_task_id}",
    "ticket": "/tickets/{ticket_id}",
    "webhook_subscription": "/webhooks/{sub_id}",
    "property": "/properties/{property_id}",
    "asset": "/assets/{asset_id}",
    "meter": "/meters/{meter_id}",
    "vendor": "/vendors/{vendor_id}",
    "inspection": "/inspections/{inspection_id}",
    "notice": "/notices/{notice_id}",
}
PATH_CHARACTERS_MAX = 500
DEFAULT = "default"
"""In the address of a list that is opened from the menu: it opens with the person's default view, if there is one."""
PHONE_DIGITS_LEAST = 3
_EXTENSION = re.compile(r"\s*(?:;ext=|,|;|#|\b(?:extension|ext)\b\.?|x)", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+")
_LETTER = re.compile(r"[^\W\d_]")


def of_record(kind: str, record_id: int, paths: Collection[str]) -> str:
    """The path of the record's page; empty if it has none. paths: those of pages.py."""
    path = PAGES.get(kind, "")
    return path.partition("{")[0] + str(record_id) if path in paths else ""


def own_path(text: str) -> str:
    """The path if it is one of this site's, else "/". Browsers read `//host`, `/\\host` and control characters as
    another site's address, or drop them."""
    is_own = text.startswith("/") and not text.startswith("//") and "\\" not in text
    if not is_own or len(text) > PATH_CHARACTERS_MAX or not text.isprintable() or not text.isascii() or " " in text:
        return "/"
    return text


def with_query(path: str, values: Mapping[str, object]) -> str:
    """The path with those values that are not empty."""
    query = urlencode([(name, str(value)) for name, value in values.items() if value not in ("", None, 0)])
    return f"{path}?{query}" if query else path


def address(path: str, filters: Mapping[str, object], **changes: object) -> str:
    """The list with these filters, some of them changed; those that are empty are left out."""
    return with_query(path, {**filters, **changes})


def tel(phone: str) -> str:
    """The address that calls a phone number as it is written, with its extension (RFC 3966); empty if it is none."""
    number, _, extension = _EXTENSION.sub(";", phone, count=1).partition(";")
    digits, extra = ("".join(sign for sign in part if sign in "0123456789") for part in (number, extension))
    if len(digits) < PHONE_DIGITS_LEAST or _LETTER.search(number):
        return ""
    return f"tel:{'+' if number.strip().startswith('+') else ''}{digits}" + (f";ext={extra}" if extra else "")


def mailto(address: str) -> str:
    """The address that writes to an e-mail address; empty if it is none."""
    name, _, host = address.partition("@")
    return f"mailto:{quote(name, safe='')}@{host}" if name and _HOST.fullmatch(host) else ""


def of_another_site(address: str) -> bool:
    """Whether the address may stand in a link that leaves this site: http or https, with a host."""
    scheme, _, remainder = address.partition("://")
    return scheme.lower() in ("http", "https") and bool(host_of(address)) and not any(map(str.isspace, remainder))


def host_of(address: str) -> str:
    """The host in an address of another site, without user and port."""
    host = address.partition("://")[2].replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0]
    return host.rpartition("@")[2].partition(":")[0][:60]


def is_address(host: str) -> bool:
    """Whether the host is an IP address: browsers have passkeys for names alone."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
