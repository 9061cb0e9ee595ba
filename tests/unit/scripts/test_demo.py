"""The demo's verdict has to be true whatever was measured."""

from scripts import demo


def results(difference: float = 0.0) -> dict:
    return {name: {"difference": difference} for name in demo.POLICIES}


def test_gain_and_loss_are_both_said() -> None:
    text = demo.verdict(results(), {"bucket": 1.101, "priority": 0.8, "auto": 1.0})
    assert "bucket takes 10 % MORE time a step than stock" in text
    assert "priority takes 20 % less time a step than stock" in text


def test_small_differences_are_none() -> None:
    text = demo.verdict(results(), {"bucket": 1.01, "priority": 0.99, "auto": 0.985})
    assert text.count("takes as long as stock Horovod") == 3


def test_other_parameters_are_a_bug() -> None:
    text = demo.verdict(results(1e-6), {"bucket": 0.5, "priority": 0.5, "auto": 0.5})
    assert "bug" in text
    assert "bit for bit" not in text


def test_every_optimizer_trains_on_the_same_batches() -> None:
    first, second = (demo.Digits.load(rank, 64) for rank in range(demo.RANKS))
    assert len(first.labels) == len(second.labels)
    again = demo.Digits.load(0, 64)
    pairs = zip(first.epoch(3), again.epoch(3), strict=True)
    assert all(a[0].equal(b[0]) and a[1].equal(b[1]) for a, b in pairs)
    assert not first.epoch(3)[0][1].equal(first.epoch(4)[0][1])
