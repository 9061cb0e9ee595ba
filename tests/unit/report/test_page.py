"""The page as a whole."""

import re
from importlib.resources import files

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deft_horovod.picture.bars import CLASS_COLOURS, STAGE_COLOURS, WAIT_COLOUR
from deft_horovod.report.basics.findings import ReportInputs, findings
from deft_horovod.report.data import report_data
from deft_horovod.report.page import page
from deft_horovod.report.parts.timelines import pictures
from tests.timing import timed
from tests.unit.solver.predict.test_timeline import whole_profiles
from tests.unit.support.example import profile
from tests.unit.support.planning import make_parameters
from tests.unit.support.random_plans import plans
from tests.unit.support.reports import (
    ODD,
    Page,
    alone,
    compared,
    comparison,
    empty,
    idle,
    many_tensors,
    predicted,
    renamed,
    sampled,
)

ALL = {
    "compared": compared(),
    "stock kept": compared(0),
    "left to Horovod": predicted("bucket"),
    "late": predicted("deft"),
    "two links": predicted("deft", sampled(profile(links=("horovod", "second")))),
    "no plan": predicted(None),
    "alone": predicted(None, alone()),
    "empty": predicted("bucket", empty()),
    "idle": predicted(None, idle()),
}


@pytest.mark.parametrize("name", ALL)
def test_it_is_whole_and_refers_to_nothing(name):
    text = page(ALL[name])
    read = Page(text)
    assert read.open == []
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert not re.search(r"https?:|//|@import|src=|href=|<script", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#hatching"}
    for number in ("nan", "inf%", "None"):
        assert number not in read.text.split()
        assert f'"{number}' not in text


@pytest.mark.parametrize("name", ALL)
def test_it_can_be_used_without_seeing_it(name):
    read = Page(page(ALL[name]))
    assert [attributes["lang"] for attributes in read.of("html")] == ["en"]
    assert len(read.of("h1")) == len(read.of("main")) == 1
    for attributes in read.of("svg"):
        hidden = attributes.get("aria-hidden") == "true"
        inner = "aria-label" not in attributes and attributes.get("role") is None
        assert (
            hidden
            or inner
            or (attributes["role"], bool(attributes["aria-label"]))
            == (
                "img",
                True,
            )
        )
    assert len(read.of("caption")) == len(read.of("table"))
    assert all(attributes.get("scope") for attributes in read.of("th"))


def test_the_verdict_comes_first():
    text = Page(page(compared())).text
    assert text.index("1.29x as fast") < text.index("What was compared")
    order = [
        "What was compared",
        "Timeline before and after",
        "Layers",
        "Staleness",
        "Links",
        "The plan",
        "How this was obtained",
    ]
    found = re.findall(r"<h2>([^<]*)</h2>", page(compared()))
    assert found == order


def test_where_stock_is_kept_it_is_shorter():
    titles = re.findall(r"<h2>([^<]*)</h2>", page(compared(0)))
    assert titles == ["What was compared", "Timeline", "Layers", "Links", "How this was obtained"]


@pytest.mark.parametrize(
    "found",
    [
        compared(2, renamed(sampled(profile()), ODD, links=False)),
        predicted("deft", renamed(sampled(profile()), ODD)),
    ],
)
def test_names_are_escaped(found):
    text = page(found)
    read = Page(text)
    assert "b" not in {tag for tag, _ in read.tags}
    assert "script" not in {tag for tag, _ in read.tags}
    assert read.open == []
    assert ODD.split(" ")[0] in read.text


@pytest.mark.parametrize("name", ["\x00\x1b[31m", "\uffff", "a\nb"])
def test_names_that_no_page_can_hold(name):
    assert page(predicted("deft", renamed(profile(), name))).encode("utf-8")


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_plan_makes_a_page(data):
    plan = data.draw(plans())
    one = data.draw(whole_profiles(plan))
    parameters = make_parameters([slot.end - slot.begin - 4 for slot in plan.slots])
    found = findings(ReportInputs("x", one, parameters, plan))
    read = Page(page(found))
    assert read.open == []
    report_data(found)
    bars = sum(len(picture.bars) for picture in pictures(found))
    drawn = sum(tag == "rect" for tag, _ in read.tags)
    assert drawn >= bars


def test_steps_that_took_no_time_make_a_page():
    of = comparison()
    arms = tuple(arm.model_copy(update={"rounds_us": ((0.0,),)}) for arm in of.arms)
    still = of.model_copy(update={"arms": arms})
    found = findings(ReportInputs.compared("x", still, compared().inputs.parameters))
    assert found.figures.speedup == 1.0
    assert "nan" not in page(found)


def test_the_same_findings_make_the_same_page():
    assert page(compared()) == page(compared())


@pytest.mark.alone
def test_a_large_model_takes_no_longer_than_a_moment():
    found = predicted("priority", sampled(many_tensors(2_000)))
    took_s, text = timed(lambda: page(found), 5.0)
    assert took_s < 5.0
    assert len(text) < 8_000_000
    assert text.count("layer1999") >= 2


def test_colours_are_those_of_pictures_of_plans():
    css = files("deft_horovod.report").joinpath("page.css").read_text(encoding="utf-8")
    light = css[: css.index("@media")]
    for kind, colour in {**STAGE_COLOURS, **CLASS_COLOURS, "waiting": WAIT_COLOUR}.items():
        assert f"--{kind}: {colour};" in light
        assert f".{kind} {{" in css
