"""What changes while training goes on: gradients that are missing, sparse, frozen, late."""

from __future__ import annotations

from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from training import CLASSES, Data, assert_equal, equal_on_all_ranks, loss_of, mlp
from twins import Twins, average_gradients, main, ours_of, plain_sgd, sgd


class _Optional(nn.Module):
    """Two branches that a step may use or not, and one that nobody ever uses."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.always, self.sometimes, self.never = (nn.Linear(8, 4) for _ in range(3))

    def forward(self, inputs: torch.Tensor, use: bool) -> torch.Tensor:
        outputs: torch.Tensor = self.always(inputs)
        return outputs + self.sometimes(inputs) if use else outputs


def case_a_short_last_window_of_accumulation(policy: str) -> None:
    twins, data = Twins(policy, backward_passes_per_step=2), Data()
    for passes in (2, 2, 1, 2):
        batches = [data.next() for _ in range(passes)]
        for model, optimizer in twins:
            optimizer.zero_grad()
            for batch in batches:
                loss_of(model, batch).backward()
            optimizer.step()
    twins.check()


def case_unused_on_one_rank_is_a_zero_there() -> None:
    for policy in ("wfbp", "bucket", "priority"):
        model, reference = _Optional(), _Optional()
        optimizer, expected = ours_of(model, policy), sgd(reference.parameters())
        for step in range(6):
            use = stock.rank() == 0 and step % 2 == 1
            inputs = torch.randn(4, 8)
            optimizer.zero_grad()
            model(inputs, use).square().mean().backward()
            optimizer.step()
            expected.zero_grad()
            reference(inputs, use).square().mean().backward()
            if step % 2 == 1:
                for parameter in reference.sometimes.parameters():
                    if parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)
            average_gradients(reference.parameters())
            expected.step()
        optimizer.flush()
        assert_equal(list(model.parameters()), list(reference.parameters()), policy)
        assert model.never.weight.grad is None
        assert model.never.weight not in optimizer.state, "an unused parameter was touched"


def case_active_inactive_active_applies_nothing_twice(policy: str) -> None:
    if policy == "stock":
        return  # Horovod applies a gradient of zeros: momentum moves what nobody used
    model = _Optional()
    optimizer = ours_of(model, policy)
    for step in range(6):
        optimizer.flush()
        before = model.sometimes.weight.detach().clone()
        optimizer.zero_grad()
        model(torch.randn(4, 8), step % 2 == 0).square().mean().backward()
        optimizer.step()
        optimizer.flush()
        moved = not torch.equal(before, model.sometimes.weight)
        assert moved == (step % 2 == 0), f"step {step}"


def case_frozen_and_thawed(policy: str) -> None:
    twins, data = Twins(policy, optimizer=plain_sgd), Data()
    for trains in (True, False, True):
        for model, _ in twins:
            next(model.parameters()).requires_grad_(trains)
        twins.train(data, 4)
    twins.check()


def case_parameters_added_between_steps(policy: str) -> None:
    model, added = mlp(), mlp()
    reference, reference_added = mlp(), mlp()
    optimizer, expected = ours_of(model, policy), sgd(reference.parameters())
    data = Data()
    for step in range(8):
        batch = data.next()
        if step == 3:
            optimizer.add_param_group({"params": list(added.parameters()), "lr": 0.01})
            expected.add_param_group({"params": list(reference_added.parameters()), "lr": 0.01})
        for own, other, stepping in (
            (model, added, optimizer),
            (reference, reference_added, expected),
        ):
            stepping.zero_grad()
            loss = loss_of(own, batch)
            if step >= 3:
                loss = loss + loss_of(other, batch)
            loss.backward()
        average_gradients([*reference.parameters(), *reference_added.parameters()])
        optimizer.step()
        expected.step()
    optimizer.flush()
    assert_equal(list(model.parameters()), list(reference.parameters()), "the first group")
    assert_equal(list(added.parameters()), list(reference_added.parameters()), "the added group")


def _embedding() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(50, 8, sparse=True), nn.Flatten(), nn.Linear(32, 4))


def _train_embedding(twins: Twins) -> None:
    generator = torch.Generator().manual_seed(stock.rank())
    for _ in range(6):
        tokens = torch.randint(0, 50, (16, 4), generator=generator)
        for model, optimizer in twins:
            optimizer.zero_grad()
            model(tokens).square().mean().backward()
            optimizer.step()
    twins.check()


def case_sparse_gradients(policy: str) -> None:
    _train_embedding(Twins(policy, make=_embedding, optimizer=plain_sgd))


def case_sparse_gradients_as_dense(policy: str) -> None:
    _train_embedding(Twins(policy, make=_embedding, optimizer=plain_sgd, sparse_as_dense=True))


class _Rounded(stock.Compression.none):  # type: ignore[misc]
    """A compression that is not Horovod's: it goes through Horovod's own calls."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return (tensor * 64).round() / 64, None


def case_foreign_compression(policy: str) -> None:
    twins = Twins(policy, compression=_Rounded)
    twins.train(Data(), 6)
    twins.check()


def case_two_optimizers_of_which_one_gets_the_others_gradients(policy: str) -> None:
    """A GAN: the generator's loss also fills the discriminator's gradients, which are discarded."""

    def judge_of_outputs() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(CLASSES, 1))

    generator, critic = Twins(policy), Twins(policy, make=judge_of_outputs)
    data = Data()
    for _ in range(5):
        batch = data.next()
        for (maker, make), (judge, judging) in zip(generator, critic, strict=True):
            judging.zero_grad()
            judge(maker(batch[0]).detach()).square().mean().backward()
            judging.step()
            make.zero_grad()
            judge(maker(batch[0])).mean().backward()
            make.step()
            if judging is critic.stock:  # Horovod refuses to discard what it has not reduced
                judging.synchronize()
                with judging.skip_synchronize():
                    judge.zero_grad()
            judging.zero_grad()
    generator.check("generator")
    critic.check("critic")


def case_compiled_model(policy: str) -> None:
    twins, data = Twins(policy), Data()
    compiled = torch.compile(twins.model, backend="aot_eager")
    for _ in range(4):
        batch = data.next()
        for model, (_, optimizer) in zip((compiled, twins.reference), twins, strict=True):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
    twins.optimizer.flush()
    assert equal_on_all_ranks(twins.model.parameters())
    twins.check()


def case_bfloat16_travels_as_float32() -> None:
    for policy in ("wfbp", "bucket", "priority"):
        model, reference = mlp().bfloat16(), mlp().bfloat16()
        optimizer, expected = ours_of(model, policy), sgd(reference.parameters())
        data = Data()
        for _ in range(4):
            inputs, targets = (part.bfloat16() for part in data.next())
            for own, stepping in ((model, optimizer), (reference, expected)):
                stepping.zero_grad()
                loss_of(own, (inputs, targets)).backward()
            for i, parameter in enumerate(reference.parameters()):
                gradient = parameter.grad
                assert gradient is not None
                average = stock.allreduce(gradient.float(), name=f"bf16.{policy}.{i}")
                parameter.grad = average.bfloat16()
            optimizer.step()
            expected.step()
        optimizer.flush()
        assert_equal(list(model.parameters()), list(reference.parameters()), policy)


if __name__ == "__main__":
    main(globals())
