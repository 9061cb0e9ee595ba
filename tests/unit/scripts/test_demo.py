"""The demo's verdict has to be true whatever was measured."""

from scripts import demo


def results(difference: float = 0.0, accuracy: float = 0.97) -> dict:
    found = {name: {"difference": 0.1, "accuracy": 0.97} for name in demo.TITLES}
    found["auto"]["difference"] = difference
    found["equal"]["accuracy"] = accuracy
    return found


def test_gain_and_loss_are_both_said() -> None:
    text = demo.verdict(results(), {"auto": 1.101, "equal": 0.8, "fp16": 0.9})
    assert "ours takes 10 % MORE time a step than stock" in text
    assert "with accuracy='equal' it takes 20 % less time a step than stock" in text
    assert "Compression.fp16 takes 10 % less" in text
    assert "with the same test accuracy" in text


def test_small_differences_are_none() -> None:
    text = demo.verdict(results(), {"auto": 1.01, "equal": 0.99, "fp16": 0.985})
    assert text.count("takes as long as stock Horovod") == 3


def test_lost_accuracy_is_said() -> None:
    text = demo.verdict(results(accuracy=0.955), {"auto": 1.0, "equal": 0.5, "fp16": 1.0})
    assert "with -1.5 points of test accuracy" in text


def test_other_parameters_are_a_bug() -> None:
    text = demo.verdict(results(1e-6), {"auto": 0.5, "equal": 0.5, "fp16": 0.5})
    assert "bug" in text
    assert "bit for bit" not in text


def test_every_optimizer_trains_on_the_same_batches() -> None:
    first, second = (demo.Digits.load(rank, 64) for rank in range(demo.RANKS))
    assert len(first.labels) == len(second.labels)
    again = demo.Digits.load(0, 64)
    pairs = zip(first.epoch(3), again.epoch(3), strict=True)
    assert all(a[0].equal(b[0]) and a[1].equal(b[1]) for a, b in pairs)
    assert not first.epoch(3)[0][1].equal(first.epoch(4)[0][1])
