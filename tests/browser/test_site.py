"""The documentation's site as a browser shows it: pages, search, on a phone and on a desk."""

import functools
import http.server
import os
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from tests.places import ROOT

PAGES = ["index", "guide/installation", "reference/config", "reference/api", "studies/convergence"]
PHONE, DESK = (360, 740), (1280, 900)
PATIENCE_S = 20
WIDTH = "return [document.documentElement.scrollWidth, innerWidth]"
SEARCH = """
const box = document.querySelector("input.md-search__input");
box.focus();
box.value = "Preserver";
box.dispatchEvent(new Event("input", {bubbles: true}));
box.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
"""
FOUND = 'return [...document.querySelectorAll("a.md-search-result__link")].map(a => a.href)'

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder; building it fails where a link is broken or a page is in no menu."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Links(HTMLParser):
    """Of one page, and the places in it that a link can lead to."""

    def __init__(self, path):
        super().__init__()
        self.to, self.places = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.places.update(of[name] for name in ("id", "name") if of.get(name))
        self.to += [of[name] for name in ("href", "src") if of.get(name)]


def test_no_link_is_broken(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 50
    broken = []
    for path, links in pages.items():
        for link in links.to:
            address, place = urldefrag(urljoin(path.as_uri(), link))
            if not address.startswith("file:"):
                continue
            target = Path(unquote(address.removeprefix("file://")))
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].places if target in pages else {place}
            if not target.is_file() or unquote(place) not in known:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_and_fetch_nothing_from_elsewhere(browser, address, page):
    for screen in (DESK, PHONE):
        browser.screen(*screen)
        browser.requested()
        browser.said()
        browser.open(f"{address}/{page}.html")
        width, screen_width = browser.run(WIDTH)
        assert width <= screen_width
        assert all(url.startswith((address, "data:", "blob:")) for url in browser.requested())
        assert [line for line in browser.said() if line["level"] == "SEVERE"] == []


def test_the_search_finds_a_page(browser, address):
    browser.screen(*DESK)
    browser.open(f"{address}/index.html")
    deadline_s = time.monotonic() + PATIENCE_S
    found = []
    while not found and time.monotonic() < deadline_s:
        browser.run(SEARCH)
        time.sleep(0.3)
        found = browser.run(FOUND)
    assert any("internals/preserver.html" in url for url in found)


def test_the_api_shows_what_docstrings_say(browser, address):
    browser.open(f"{address}/reference/api.html")
    text = browser.run("return document.body.innerText")
    for word in ("backward_passes_per_step", "flush", "BuildMismatchError"):
        assert word in text
