"""The page of `deft-profile report` as a browser shows it, on a phone and on a desk."""

from itertools import pairwise

import pytest

from deft_horovod.cli.inputs import ProfileFile
from deft_horovod.picture.bars import CLASS_COLOURS
from deft_horovod.report.page import page
from tests.places import ROOT
from tests.unit.support.example import profile
from tests.unit.support.reports import (
    ODD,
    alone,
    compared,
    many_tensors,
    predicted,
    renamed,
    sampled,
)

SCREENS = [(360, 740), (1280, 900)]
DOCS = ROOT / "docs"

# Boxes of everything that shows text by itself, and how it is shown.
TEXTS = """
return [...document.querySelectorAll("body *")].filter(e => {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  return own && !e.closest("title") && e.getClientRects().length;
}).map(e => {
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  return {
    text: e.textContent, size: parseFloat(style.fontSize), width: box.width,
    left: box.left, right: box.right, scrolls: !!e.closest(".scroll"),
    caption: e.tagName === "CAPTION"
  };
});
"""
CHARTS = """
return [...document.querySelectorAll("[role=img]")].map(e => {
  const box = e.getBoundingClientRect();
  const parts = [...e.querySelectorAll("rect, circle, polyline, .bar")];
  return {
    label: e.getAttribute("aria-label"), width: box.width, height: box.height,
    left: box.left, right: box.right, parts: parts.length,
    seen: parts.filter(p => {
      const b = p.getBoundingClientRect();
      return b.left >= box.left - 8 && b.right <= box.right + 8 && b.height > 0;
    }).length
  };
});
"""
# Labels inside of bars have to lie in their bars and not to meet each other.
INSIDE = """
return [...document.querySelectorAll(".timeline svg > g")].map(row => ({
  bars: [...row.querySelectorAll("rect")].map(e => {
    const b = e.getBoundingClientRect(); return [b.left, b.right];
  }),
  labels: [...row.querySelectorAll("text.inside")].filter(e => e.getClientRects().length).map(e => {
    const b = e.getBoundingClientRect(); return [b.left, b.right, e.textContent];
  })
}));
"""
WIDTH = "return [document.documentElement.scrollWidth, innerWidth]"
GROUND = "return getComputedStyle(document.body).backgroundColor"


def two_links():
    return predicted("deft", sampled(profile(links=("horovod", "second"))), max_merge=1)


PAGES = {
    "compared": compared,
    "stock kept": lambda: compared(0),
    "late": lambda: predicted("deft"),
    "two links": two_links,
    "left to Horovod": lambda: predicted("bucket"),
    "alone": lambda: predicted(None, alone()),
    "odd names": lambda: predicted("deft", renamed(sampled(profile()), ODD * 4)),
    "many layers": lambda: predicted("priority", sampled(many_tensors(400))),
    "documented": lambda: predicted(
        "deft", ProfileFile().convert(str(DOCS / "examples" / "profile.json"), None, None)
    ),
}


@pytest.fixture(scope="module", params=PAGES)
def address(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(PAGES[request.param]()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(params=SCREENS, ids=["phone", "desk"])
def shown(browser, address, request):
    """The page, on a screen."""
    browser.screen(*request.param)
    browser.open(address)
    return browser


def test_nothing_is_fetched_and_nothing_complained_about(browser, address):
    browser.said()
    browser.requested()
    for width, height in SCREENS:
        for scheme in ("light", "dark"):
            browser.screen(width, height, scheme)
            browser.open(address)
    assert set(browser.requested()) == {address}
    assert browser.said() == []


def test_the_page_never_scrolls_sideways(shown):
    width, seen = shown.run(WIDTH)
    assert width <= seen


def test_unfolded_tables_scroll_inside_themselves(shown):
    shown.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    width, seen = shown.run(WIDTH)
    assert width <= seen


def test_text_can_be_read(shown):
    texts = [one for one in shown.run(TEXTS) if not one["caption"]]
    assert len(texts) > 30
    assert min(one["size"] for one in texts) >= 11.0
    _, seen = shown.run(WIDTH)
    outside = [t for t in texts if not t["scrolls"] and (t["left"] < 0 or t["right"] > seen)]
    assert outside == []


def test_charts_are_whole(shown):
    charts = shown.run(CHARTS)
    _, seen = shown.run(WIDTH)
    assert charts
    for chart in charts:
        assert chart["width"] >= 200, chart
        assert chart["height"] >= 40, chart
        assert 0 <= chart["left"] < chart["right"] <= seen, chart
        assert chart["seen"] == chart["parts"] > 0, chart


def test_labels_lie_in_their_bars(shown):
    rows = shown.run(INSIDE)
    assert any(row["labels"] for row in rows)
    for row in rows:
        places = sorted(row["labels"])
        for left, right, text in places:
            assert any(a <= left and right <= b for a, b in row["bars"]), (text, left, right)
        assert all(one[1] <= other[0] for one, other in pairwise(places))


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_colours_are_those_that_the_system_prefers(browser, address, scheme, dark):
    browser.screen(*SCREENS[1], scheme)
    browser.open(address)
    values = [int(n) for n in browser.run(GROUND).strip("rgb()").split(",")]
    assert (max(values) < 80) == dark


def test_paper_is_white_and_shows_the_same_bars(browser, address):
    browser.screen(*SCREENS[1], "dark", media="print")
    browser.open(address)
    values = [int(n) for n in browser.run(GROUND).strip("rgb()").split(",")]
    assert min(values) > 240
    for chart in browser.run(CHARTS):
        assert chart["seen"] == chart["parts"] > 0, chart


def test_bars_have_the_colours_of_their_kinds(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(compared()), encoding="utf-8")
    browser.screen(*SCREENS[1])
    browser.open(path.as_uri())
    for kind in ("synchronous", "delayed"):
        script = f"return getComputedStyle(document.querySelector('.timeline .{kind} rect')).fill"
        values = [int(n) for n in browser.run(script).strip("rgb()").split(",")]
        assert "#" + "".join(f"{value:02x}" for value in values) == CLASS_COLOURS[kind]


def test_a_wide_screen_has_the_longer_labels(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(compared()), encoding="utf-8")
    told = {}
    for width, height in SCREENS:
        browser.screen(width, height)
        browser.open(path.as_uri())
        told[width] = {label[2] for row in browser.run(INSIDE) for label in row["labels"]}
    assert "F0" in told[360]
    assert "forward 0" not in told[360]
    assert {"forward 0", "backward 1"} <= told[1280]
    assert "F0" not in told[1280]
