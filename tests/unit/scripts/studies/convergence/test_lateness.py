import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.studies.convergence.lateness import Arm, Lateness

WORKERS = 3


class Quadratics:
    """Workers whose losses have the same curvature and different minima."""

    def __init__(self, arm, lr, momentum, seed=0):
        generator = torch.Generator().manual_seed(seed)
        mix = torch.randn(4, 4, generator=generator, dtype=torch.float64)
        self.curvature = mix @ mix.T / 4 + 0.1 * torch.eye(4)
        self.minima = torch.randn(WORKERS, 4, generator=generator, dtype=torch.float64)
        self.x = torch.randn(4, generator=generator, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([self.x], lr=lr, momentum=momentum)
        self.lateness = Lateness(
            arm, [self.x] if arm.late else [], [optimizer], False, begin=arm.warmup
        )
        self.step = 0

    def train(self, steps):
        averages = []
        for _ in range(steps):
            own = []
            for worker in range(WORKERS):
                with self.lateness.predicted(worker):
                    own.append({self.x: self.curvature @ (self.x.detach() - self.minima[worker])})
            average = {self.x: torch.stack([g[self.x] for g in own]).mean(0)}
            averages.append(average[self.x])
            self.lateness.boundary(self.step, own, average)
            self.step += 1
        return averages


@given(
    st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (0, 3), (2, 4)]),
    st.floats(0.01, 0.3),
    st.integers(1, 20),
    st.integers(0, 5),
)
@settings(deadline=None, max_examples=60)
def test_local_guesses_make_late_training_the_synchronous_one(timing, lr, warmup, seed):
    """Where all workers see one curvature, the averaged gradients are those of synchronous SGD."""
    delay, merge = timing
    late = Quadratics(
        Arm(-1, delay, merge, "local", warmup=warmup, partial=True), lr, momentum=0.0, seed=seed
    )
    synchronous = Quadratics(Arm(), lr, momentum=0.0, seed=seed)
    mine, theirs = late.train(40), synchronous.train(40)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("correction", ["local", "fed_back"])
def test_with_momentum_too_where_nothing_is_merged(correction):
    late = Quadratics(Arm(-1, 2, 1, correction, warmup=5), 0.05, momentum=0.9)
    synchronous = Quadratics(Arm(), 0.05, momentum=0.9)
    mine, theirs = late.train(40), synchronous.train(40)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("correction", ["none", "previous", "own_and_previous", "own_share"])
def test_other_guesses_do_not(correction):
    late = Quadratics(Arm(-1, 1, 1, correction, warmup=5), 0.1, momentum=0.0)
    synchronous = Quadratics(Arm(), 0.1, momentum=0.0)
    mine, theirs = late.train(20), synchronous.train(20)
    assert not all(torch.allclose(a, b, atol=1e-6) for a, b in zip(mine, theirs, strict=True))


def test_late_parameters_have_their_true_values_at_boundaries():
    late = Quadratics(Arm(-1, 1, 1, "local", warmup=0), 0.1, momentum=0.0)
    before = late.x.detach().clone()
    late.train(1)
    assert torch.equal(late.x, before)  # its update comes one step later
    with late.lateness.predicted(0):
        pass
    assert torch.equal(late.x, before)


@pytest.mark.parametrize("arm", [Arm(), Arm(2, 1, 4, "local", partial=True, power=1.0)])
def test_names_tell_arms_apart(arm):
    assert (
        arm.name
        == {
            0: "synchronous",
            2: "2 late by 1, merged by 4, with what is not complete, rate by k^1, local",
        }[arm.late]
    )
