"""What follows the steps and overrides nothing does nothing."""

from deft_horovod.runtime.follower import Follower, Wish


def test_it_asks_for_nothing_by_itself():
    follower = Follower()
    follower.begin_boundary()
    assert follower.end_boundary(object()) is Wish.NOTHING
    follower.updated()
    follower.skip_step()


def test_of_several_wishes_the_largest_includes_the_others():
    assert max(Wish) is Wish.MEASURE_AGAIN
    assert min(Wish) is Wish.NOTHING
