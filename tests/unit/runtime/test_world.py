import gc

from deft_horovod.runtime.world import World, world


class Forgetful:
    """Stands where an engine would: it has to be told when Horovod is new."""

    def __init__(self) -> None:
        self.forgot = 0

    def forget(self) -> None:
        self.forgot += 1


def test_numbers_are_given_once_in_each_process_set() -> None:
    own = World()
    assert [own.take_number(0) for _ in range(3)] == [0, 1, 2]
    assert [own.take_number(7) for _ in range(2)] == [0, 1]


def test_a_new_horovod_starts_the_numbering_again_and_every_engine_forgets() -> None:
    own = World()
    engines = [Forgetful(), Forgetful()]
    for engine in engines:
        own.engines.add(engine)  # type: ignore[arg-type]
    own.take_number(0)
    own.renew()
    assert own.take_number(0) == 0
    assert [engine.forgot for engine in engines] == [1, 1]


def test_an_engine_that_nobody_holds_is_not_kept_alive() -> None:
    own = World()
    own.engines.add(Forgetful())  # type: ignore[arg-type]
    gc.collect()
    assert len(own.engines) == 0


def test_a_process_has_one_world() -> None:
    assert world() is world()
