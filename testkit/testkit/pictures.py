"""`make pictures`: pictures of the console's pages, light, dark and on a phone, into docs/console.

Starts a Makeready of its own with its demo company, signs in with demo.json, and opens each page that
`console.pages` lists. A page of one record is that of the first link to such a record on the pages before it; without
one it has no picture, and the command says so. `--state FOLDER` has the pictures of a system that runs already.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from console import pages
from testkit import chromium
from testkit.demo_system import running_demo

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "console"
LOOKS = {"light": ("light", 1360, 860), "dark": ("dark", 1360, 860), "phone": ("light", 390, 844)}
# A longer page is cut off there: a hundred rows show no more than twenty.
HEIGHT_MAX = 1200
COLOURS = 32
OPEN_MILLISECONDS = 60_000


def records(paths: Sequence[str], links: set[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a page's path in pages.py and the first of the links that opens it, if there is one."""
    for path in paths:
        wanted = re.compile(re.sub(r"\\\{\w+\\\}", "[0-9a-f-]+", re.escape(path)) + "$")
        yield path, next((link for link in sorted(links, key=lambda one: (len(one), one)) if wanted.match(link)), "")


def name_of(path: str) -> str:
    """The picture of `/webhooks/{sub_id}/retry` is `webhooks-one-retry`."""
    return re.sub(r"\{\w+\}", "one", path).strip("/").replace("/", "-") or "overview"


def picture(page: Page, height: int) -> bytes:
    """A PNG of a few colours, at most HEIGHT_MAX high."""
    whole = int(page.evaluate("document.documentElement.scrollHeight"))
    size = page.viewport_size
    assert size is not None
    # The page's own height, so that what sticks to the window's edges stands at the picture's.
    page.set_viewport_size({"width": size["width"], "height": min(max(whole, height), HEIGHT_MAX)})
    image = Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide")))
    page.set_viewport_size({"width": size["width"], "height": height})
    made = io.BytesIO()
    with_few_colours(image.convert("RGB")).save(made, "PNG", optimize=True)
    return made.getvalue()


def with_few_colours(image: Image.Image) -> Image.Image:
    """The image in its most frequent colours: surfaces and meanings stay exact, and only letters' edges change."""
    found = sorted(image.getcolors(image.width * image.height) or (), reverse=True)[:COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in found for part in cast("tuple[int, ...]", colour)])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


class Camera:
    """Takes pictures of the pages of one system, as one person sees them."""

    def __init__(self, browser: Browser, origin: str, folder: Path) -> None:
        self.browser, self.origin, self.folder = browser, origin, folder
        self.links: set[str] = set()
        self.missing: list[str] = []
        self.failed: list[str] = []
        self.bytes = 0

    def _page(self, look: str, cookies: list[Any]) -> Page:
        scheme, width, height = LOOKS[look]
        context = self.browser.new_context(
            color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": height}
        )
        context.set_default_timeout(OPEN_MILLISECONDS)
        context.add_cookies(cookies)
        return context.new_page()

    def sign_in(self, email: str, password: str) -> list[Any]:
        page = self._page("light", [])
        page.goto(f"{self.origin}/sign-in")
        page.fill("#email", email)
        page.fill("#password", password)
        page.click("form[action='/sign-in'] button")
        page.wait_for_url(f"{self.origin}/")
        cookies = list(page.context.cookies())
        page.context.close()
        return cookies

    def take(self, paths: Sequence[str], cookies: list[Any], wanted: str) -> None:
        """Takes those pages whose name fits. Links are gathered from all, in the order of pages.py."""
        tabs = {look: self._page(look, cookies) for look in LOOKS}
        for path in paths:
            ((_, link),) = records([path], self.links) if "{" in path else [(path, path)]
            if not link:
                self.missing.append(path)
                continue
            for look, tab in tabs.items():
                answer = tab.goto(self.origin + link)
                if answer is None or answer.status != 200:
                    self.failed.append(f"{link}: {answer.status if answer else 'no answer'}")
                    break
                found = tab.locator("main a[href^='/']")
                self.links |= {str(one.get_attribute("href")).partition("?")[0] for one in found.all()}
                if re.search(wanted, name_of(path)):
                    made = picture(tab, LOOKS[look][2])
                    self.bytes += len(made)
                    (self.folder / f"{name_of(path)}-{look}.png").write_bytes(made)
                elif look == "light":
                    break
        for tab in tabs.values():
            tab.context.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make pictures", description=__doc__)
    parser.add_argument("--state", type=Path, help="the STATE_DIR of a system that runs, instead of one of its own")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go (default docs/console)")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="the pages whose name this expression is found in"
    )
    given = parser.parse_args()
    executable = chromium.found()
    if executable is None:
        sys.stderr.write(f"pictures: no browser: {chromium.MISSING}\n")
        return 1
    given.folder.mkdir(parents=True, exist_ok=True)
    listed = [page for page in pages.PAGES if page.method == "GET" and not page.panel and "{link}" not in page.path]
    with running_demo(given.state) as state, sync_playwright() as playwright:
        demo = json.loads((state / "demo.json").read_text())
        browser = playwright.chromium.launch(executable_path=executable, args=chromium.OPTIONS)
        camera = Camera(browser, demo["admin_url"], given.folder)
        inside = [page.path for page in listed if page.kinds != pages.STRANGERS]
        camera.take([page.path for page in listed if page.kinds == pages.STRANGERS], [], given.only)
        camera.take(inside, camera.sign_in(**demo["administrator"]), given.only)
        browser.close()
    for path in camera.missing:
        sys.stdout.write(f"No picture of {path}: no page links to one.\n")
    sys.stdout.write(f"{camera.bytes / 1e6:.1f} MB of pictures in {given.folder}\n")
    for link in camera.failed:
        sys.stderr.write(f"pictures: {link}\n")
    return 1 if camera.failed else 0


if __name__ == "__main__":
    sys.exit(main())
