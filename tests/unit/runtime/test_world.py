import gc

from deft_horovod.runtime.world import World, world


class FakeEngine:
    def __init__(self):
        self.forgot = 0

    def forget(self):
        self.forgot += 1


def test_numbers_count_up_in_each_process_set():
    here = World()
    assert [here.take_number(0), here.take_number(0), here.take_number(3)] == [0, 1, 0]
    assert here.take_number(0) == 2


def test_after_a_reset_everything_begins_anew():
    here, engine = World(), FakeEngine()
    here.engines.add(engine)
    here.take_number(0)
    here.renew()
    assert engine.forgot == 1
    assert here.take_number(0) == 0


def test_it_keeps_no_engine_alive():
    here = World()
    here.engines.add(FakeEngine())
    gc.collect()
    here.renew()
    assert len(here.engines) == 0


def test_there_is_one_a_process():
    assert world() is world()
