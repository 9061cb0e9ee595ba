import torch

from scripts.studies.convergence.acco import NAME, TrialStep
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.training import Run, Training


def test_a_trial_step_is_taken_back():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    trial = TrialStep([weight], [optimizer])
    trial.foresee([{weight: torch.tensor([2.0, 0.0])}, {weight: torch.tensor([0.0, 2.0])}])
    assert weight.tolist() == [1.0, 2.0]
    assert not optimizer.state.get(weight)
    with trial.taken():
        assert torch.allclose(weight, torch.tensor([0.9, 1.9]))
    assert weight.tolist() == [1.0, 2.0]


def test_before_the_trial_it_is_synchronous_training():
    """Half a batch and half a batch are a batch."""
    exact = Training(Run("mlp", "sgd", 0.05, Arm(), 1, stretch=0.03))
    halves = Training(Run("mlp", "sgd", 0.05, Arm(-1, correction=NAME, warmup=99), 1, stretch=0.03))
    exact.train()
    halves.train()
    for one, other in zip(exact.model.parameters(), halves.model.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)


def test_first_halves_see_the_trial_and_second_halves_the_truth(monkeypatch):
    arm = Arm(-1, correction=NAME, warmup=0)
    training = Training(Run("mlp", "sgd", 0.05, arm, 1, stretch=0.02))
    seen = []
    gradient = training._gradient

    def watched(batch):
        seen.append(next(iter(training.parameters.values())).detach().clone())
        return gradient(batch)

    monkeypatch.setattr(training, "_gradient", watched)
    training.train()
    workers = training.run.workers
    for step in range(1, training.steps):
        pairs = seen[2 * workers * step : 2 * workers * (step + 1)]
        first, second = pairs[::2], pairs[1::2]
        assert all(torch.equal(one, first[0]) for one in first)
        assert all(torch.equal(one, second[0]) for one in second)
        assert not torch.equal(first[0], second[0])
