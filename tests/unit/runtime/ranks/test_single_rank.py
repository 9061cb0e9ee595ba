"""A rank alone agrees with itself."""

from deft_horovod.runtime.ranks.single_rank import SingleRank


def test_it_agrees_without_horovod():
    alone = SingleRank()
    assert alone.deciding
    assert (alone.rank, alone.decider) == (0, 0)
    assert alone.everyone_here()
    assert alone.collect("é") == ["é"]
    assert alone.share("text") == "text"
    assert alone.share(None) == ""
    alone.require_equal({"anything": 1})
