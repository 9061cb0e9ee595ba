import gc
import logging

from deft_horovod.runtime.process import Process, this_process


class FakeEngine:
    def __init__(self):
        self.forgot = 0

    def forget(self):
        self.forgot += 1


class Peers:
    """An agreement with ranks that have used so many numbers."""

    def __init__(self, *used):
        self._used = used

    def gather(self, numbers):
        return [list(numbers), *([used] for used in self._used)]


def test_numbers_count_up_in_each_process_set():
    here, alone = Process(), Peers()
    assert [here.take_number(set_id, alone) for set_id in (0, 0, 3, 0)] == [0, 1, 0, 2]


def test_a_number_is_one_that_no_rank_has_used():
    newcomer = Process()
    assert newcomer.take_number(0, Peers(5, 2)) == 5
    assert newcomer.take_number(0, Peers(6, 6)) == 6


def test_after_a_reset_everything_begins_anew_but_numbers_go_on():
    here, engine = Process(), FakeEngine()
    here.engines.add(engine)
    here.take_number(0, Peers())
    here.renew()
    assert engine.forgot == 1
    assert here.take_number(0, Peers(0)) == 1


def test_it_keeps_no_engine_alive():
    here = Process()
    here.engines.add(FakeEngine())
    gc.collect()
    here.renew()
    assert len(here.engines) == 0


class GoneReducer:
    idle = True

    def abandon(self):
        """Nothing is left to send."""


def test_whoever_forgot_to_flush_is_told_even_if_the_optimizer_is_gone(caplog):
    def told():
        said = [one.getMessage() for one in caplog.records if one.name == "deft_horovod"]
        caplog.clear()
        return said

    caplog.set_level(logging.WARNING, "deft_horovod")
    here = Process()
    here.leave()
    assert told() == []
    here.inherit(GoneReducer(), 3, in_step=False)
    here.inherit(GoneReducer(), 4, in_step=True)
    here.leave()
    (said,) = told()
    assert "7 gradients of the last steps were never applied" in said
    here.leave()
    assert told() == []  # it is said once


def test_there_is_one_a_process():
    assert this_process() is this_process()
