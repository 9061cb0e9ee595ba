"""Labels that are shown where they fit."""

from importlib.resources import files

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.report.basics.labels import WIDTHS, fitting

CSS = files("deft_horovod.report").joinpath("page.css").read_text(encoding="utf-8")


def shown(found, width):
    """What `page.css` leaves to be seen in a chart of that width."""
    texts = []
    for text, classes in found:
        words = dict(word.rsplit("-", 1) for word in classes.split())
        if width >= int(words["from"]) and width < int(words.get("to", 10**9)):
            texts.append(text)
    return texts


@given(st.floats(0.0, 1.0), st.integers(200, 1300))
def test_at_most_one_is_shown_and_it_fits(share, width):
    found = list(fitting(["backward 12", "B12"], share))
    texts = shown(found, width)
    assert len(texts) <= 1
    for text in texts:
        assert len(text) * 7.5 + 6 <= share * width


def test_the_longest_that_fits_is_shown():
    found = list(fitting(["forward 0", "F0"], 0.1))
    assert [shown(found, width) for width in (250, 300, 740, 750, 1100)] == [
        [],
        ["F0"],
        ["F0"],
        ["forward 0"],
        ["forward 0"],
    ]


def test_nothing_fits_into_nothing():
    assert list(fitting(["a"], 0.0)) == []
    assert list(fitting([], 1.0)) == []


def test_the_style_knows_all_widths():
    for kind, widths in (("from", WIDTHS), ("to", WIDTHS[1:])):
        for width in widths:
            display = "inline" if kind == "from" else "none"
            rule = f".{kind}-{width} {{ display: {display}; }}"
            assert f"@container (min-width: {width}px) {{ {rule} }}" in CSS
    # What hides has to come after what shows.
    assert CSS.rindex(".from-") < CSS.index(".to-")
