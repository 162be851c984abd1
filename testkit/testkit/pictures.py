"""`make pictures`: pictures of the console's pages, light, dark and on a phone.

Those of `SHOWN` go into docs/console, where documents show them; all others into `pictures`, which git ignores.

Starts a Makeready of its own with its demo company, signs in with demo.json, and opens each page that
`console.pages` lists. A page of one record is that of the first link to such a record on the pages before it; without
one it has no picture, and the command says so. `--state FOLDER` has the pictures of a system that runs already.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from console import pages
from testkit import chromium
from testkit.demo_system import running_demo

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "pictures"
DOCUMENTS = ROOT / "docs" / "console"
SHOWN = {
    *("overview-light", "board-light", "board-dark", "tickets-one-light", "webhooks-one-light"),
    *("imports-new-light", "keys-light", "tickets-phone"),
}
# The languages of the demo's names, each with Debian's package that has letters for it.
FONTS = dict.fromkeys(("ar", "he", "hi", "th", "el", "ru"), "fonts-noto-core") | dict.fromkeys(
    ("ja", "ko", "zh-cn"), "fonts-noto-cjk"
)
LOOKS = {"light": ("light", 1360, 860), "dark": ("dark", 1360, 860), "phone": ("light", 390, 844)}
# A longer page is cut off there: a hundred rows show no more than twenty.
HEIGHT_MAX = 1200
COLOURS = 32
OPEN_MILLISECONDS = 60_000


def records(paths: Sequence[str], links: set[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a page's path in pages.py and the first of the links that opens it, if there is one."""
    for path in paths:
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[0-9a-f-]+", re.escape(path)) + "$")
        opening = filter(pattern.match, links)
        yield path, min(opening, key=lambda link: (len(link), link), default="")


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
    buffer = io.BytesIO()
    with_few_colours(image.convert("RGB")).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def with_few_colours(image: Image.Image) -> Image.Image:
    """The image in its most frequent colours: surfaces and meanings stay exact, and only letters' edges change."""
    colours = sorted(image.getcolors(image.width * image.height) or (), reverse=True)[:COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in colours for part in cast("tuple[int, ...]", colour)])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def missing_fonts() -> set[str]:
    """Debian's packages without which names of the demo would be boxes."""
    if shutil.which("fc-list") is None:
        return {"fontconfig", *FONTS.values()}
    missing = set()
    for language, package in FONTS.items():
        listed = subprocess.run(["fc-list", f":lang={language}"], capture_output=True, text=True, check=True)
        if not listed.stdout.strip():
            missing.add(package)
    return missing


class Camera:
    """Takes pictures of the pages of one system, as one person sees them."""

    def __init__(self, browser: Browser, origin: str, folder: Path, documents: Path) -> None:
        self.browser, self.origin, self.folder, self.documents = browser, origin, folder, documents
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

    def take(self, paths: Sequence[str], cookies: list[Any], shape: str) -> None:
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
                anchors = tab.locator("main a[href^='/']")
                self.links |= {str(anchor.get_attribute("href")).partition("?")[0] for anchor in anchors.all()}
                if re.search(shape, name_of(path)):
                    image = picture(tab, LOOKS[look][2])
                    self.bytes += len(image)
                    name = f"{name_of(path)}-{look}"
                    folder = self.documents if name in SHOWN else self.folder
                    (folder / f"{name}.png").write_bytes(image)
                elif look == "light":
                    break
        for tab in tabs.values():
            tab.context.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make pictures", description=__doc__)
    parser.add_argument("--state", type=Path, help="the STATE_DIR of a system that runs, instead of one of its own")
    parser.add_argument(
        "--folder", type=Path, help="where all pictures go (default: docs/console and pictures)", metavar="FOLDER"
    )
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="the pages whose name this expression is found in"
    )
    options = parser.parse_args()
    executable = chromium.found()
    if executable is None:
        sys.stderr.write(f"pictures: no browser: {chromium.MISSING}\n")
        return 1
    if lacking := missing_fonts():
        sys.stderr.write(f"pictures: the demo's names need letters: apt-get install {' '.join(sorted(lacking))}\n")
        return 1
    folder, documents = options.folder or FOLDER, options.folder or DOCUMENTS
    folder.mkdir(parents=True, exist_ok=True)
    listed = [page for page in pages.PAGES if page.method == "GET" and not page.panel and "{link}" not in page.path]
    with running_demo(options.state) as state, sync_playwright() as playwright:
        demo = json.loads((state / "demo.json").read_text())
        browser = playwright.chromium.launch(executable_path=executable, args=chromium.OPTIONS)
        camera = Camera(browser, demo["admin_url"], folder, documents)
        inside = [page.path for page in listed if page.kinds != pages.STRANGERS]
        camera.take([page.path for page in listed if page.kinds == pages.STRANGERS], [], options.only)
        camera.take(inside, camera.sign_in(**demo["administrator"]), options.only)
        browser.close()
    for path in camera.missing:
        sys.stdout.write(f"No picture of {path}: no page links to one.\n")
    sys.stdout.write(f"{camera.bytes / 1e6:.1f} MB of pictures in {folder}\n")
    for link in camera.failed:
        sys.stderr.write(f"pictures: {link}\n")
    return 1 if camera.failed else 0


if __name__ == "__main__":
    sys.exit(main())
