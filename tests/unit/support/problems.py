"""Random problems for the solver, beyond what brute force can do."""

from hypothesis import strategies as st

from deft_horovod.solver.problem import Item, Limits, Problem

_SAVED = {"f16": 0.5, "int8": 0.25, "int4": 0.125}


def encoded(formats, times, buckets=1):
    """The times of an item in these formats, if it takes these as it is."""
    return {one: (tuple(time * _SAVED[one] for time in times),) * buckets for one in formats}


@st.composite
def problems(draw, most_items=30, most_links=3):
    pick = draw(st.randoms(use_true_random=False))
    links = draw(st.integers(1, most_links))
    forward, backward = pick.uniform(0, 50), pick.uniform(1, 100)
    load = pick.choice([0.05, 0.5, 1.0, 3.0]) * (forward + backward)
    items = []
    for _ in range(draw(st.integers(1, most_items))):
        buckets = pick.choice([1, 1, 1, 2, 7])
        time = pick.uniform(0, 2 * load / 10) / buckets
        times = tuple(time * pick.choice([1, 1, 2.5]) for _ in range(links))
        items.append(
            Item(
                ready_us=pick.choice([backward, pick.uniform(0, backward)]),
                need_us=pick.choice([None, 0.0, pick.uniform(0, forward), forward]),
                weight=pick.uniform(0, 10),
                times_us=(times,) * buckets,
                encoded_us=encoded(pick.choice([(), ("int8",), ("f16", "int4")]), times, buckets),
            )
        )
    limits = Limits(draw(st.integers(0, 3)), draw(st.integers(1, 4)))
    optimizer = pick.choice([0.0, pick.uniform(0, 20)])
    return Problem(tuple(items), forward, backward, optimizer, links, limits)


def example(times=(30.0, 30.0, 30.0), links=1, **changes):
    """Forward 40, backward 60; three items, ready at 20, 40 and 60, used at 20, 10 and 0."""
    fields = {
        "items": tuple(
            Item(20.0 * (i + 1), 10.0 * (len(times) - 1 - i), 1.0, ((time,) * links,))
            for i, time in enumerate(times)
        ),
        "forward_us": 40.0,
        "backward_us": 60.0,
        "optimizer_us": 0.0,
        "links": links,
        "limits": Limits(0, 1),
        "margin": 1.0,
    }
    return Problem(**{**fields, **changes})
