"""The yard: machines are opened in order."""

from deft_horovod.capacity.schedule.yard import Yard
from tests.unit.support.capacity.demands import demand, job


def test_placing_opens_what_is_fresh():
    asked = demand(job(ways=((1, 4, 2, 100),)), job(ways=((1, 1, 1, 100),), deadline_s=159))
    yard = Yard(asked)
    assert yard.closed(1) == 2
    fresh = yard.fresh(1, 2)
    way = asked.works[0].ways[0]
    start_s = yard.fits(0, way, fresh)
    assert start_s == 60
    yard.place(0, way, fresh, start_s)
    assert (yard.closed(1), yard.open[1]) == (0, fresh)
    assert yard.fits(1, asked.works[1].ways[0], fresh[:1]) is None
    assert yard.schedule().missed == (1,)
