"""What links were measured to do."""

import pytest

from deft_horovod.profile import LinkCost, LinkProfile, LinkSample
from deft_horovod.report.basics.markup import document
from deft_horovod.report.parts.link_fits import link_fits, residuals
from tests.unit.support.example import profile
from tests.unit.support.reports import Page, alone, predicted, sampled


def of(*links):
    return predicted(None, profile().model_copy(update={"links": links}))


def link(*samples, alpha=100.0, beta=0.01, busy=None):
    return LinkProfile(
        name="wire",
        cost=LinkCost(alpha_us=alpha, beta_us_per_byte=beta),
        busy_cost=busy,
        samples=tuple(LinkSample(size_bytes=size, time_us=us) for size, us in samples),
    )


def test_every_sample_is_a_point_and_has_its_residual():
    found = predicted("deft", sampled(profile(links=("horovod", "second"))))
    section = link_fits(found)
    samples = sum(len(one.samples) for one in found.inputs.profile.links)
    assert len(list(section.iter("circle"))) == 2 * samples
    for chart in section.iter("circle"):
        for name in ("cx", "cy"):
            value = chart.get(name)
            if value.endswith("%"):
                assert 0.0 <= float(value.rstrip("%")) <= 100.0
    text = Page(document(section)).text
    assert "-7.0%" in text
    assert "+10.0%" in text
    assert "8.0%" in text


def test_residuals_are_those_of_the_fit():
    assert residuals(link((0, 100.0), (10_000, 400.0))) == pytest.approx([0.0, 1.0])


def test_lines_alone_and_busy():
    busy = LinkCost(alpha_us=200.0, beta_us_per_byte=0.02)
    both = link_fits(of(link((1_000, 110.0), (10_000, 210.0), busy=busy)))
    assert [line.get("class") for line in both.iter("polyline")] == ["fit", "fit busy"]
    alone_only = link_fits(of(link((1_000, 110.0), (10_000, 210.0))))
    assert [line.get("class") for line in alone_only.iter("polyline")] == ["fit"]
    for line in both.iter("polyline"):
        places = [float(n) for point in line.get("points").split() for n in point.split(",")]
        assert all(0.0 <= place <= 1000.0 for place in places)


@pytest.mark.parametrize(
    "one",
    [
        link((0, 0.0)),
        link((0, 0.0), (1, 0.0), alpha=0.0, beta=0.0),
        link((1_000, 110.0)),
        link((10, 1.0), (10, 2.0)),
        link((2**62, 1e18), (1, 1e-6)),
    ],
)
def test_odd_samples(one):
    text = document(link_fits(of(one)))
    assert "nan" not in text
    assert "inf%" not in text


def test_without_samples_that_is_told():
    text = Page(document(link_fits(of(link())))).text
    assert "no samples of this link" in text


def test_without_links_there_is_nothing():
    assert link_fits(predicted(None, alone())) is None
