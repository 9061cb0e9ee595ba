"""The models of the GPU check are the published ones."""

from __future__ import annotations

import pytest
import torch

from deft_horovod.workloads import catalogue as model_shapes
from scripts.gpu.measure import models, models_images, models_text

PUBLISHED = {
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "vgg19": 143_667_240,
    "gpt2": 124_439_808,
    "gpt2_medium": 354_823_168,
    "bert_base": 109_482_240,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    assert models.MODELS[name].parameters == PUBLISHED[name]
    model = models.make(name, "meta")
    assert models.parameter_count(model) == PUBLISHED[name]
    # The simulator's shapes say the same of how large and how many tensors are.
    shape = model_shapes.SHAPES[name]()
    ours = sorted(parameter.numel() for parameter in model.parameters())
    theirs = sorted(tensor.elements for layer in shape.layers for tensor in layer.tensors)
    if name.startswith("gpt2"):
        assert ours == theirs
    assert (sum(ours), len(ours)) == (shape.elements, shape.tensors)


def test_no_model_is_left_out() -> None:
    assert set(models.REAL) == set(PUBLISHED)


@pytest.mark.parametrize("name", ["tiny_resnet", "tiny_gpt2"])
def test_tiny_ones_learn(name: str) -> None:
    torch.set_num_threads(1)
    model, batch = models.make(name, "cpu"), models.batch_of(name, "cpu")
    assert models.parameter_count(model) == models.MODELS[name].parameters
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = models.loss_of(model, batch)
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_bert_gives_every_parameter_a_gradient() -> None:
    model = models_text.Bert(64, 1, words=50, context=16)
    batch = torch.randint(0, 50, (2, 8)), torch.rand(2, 64)
    models.loss_of(model, batch).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_values_are_the_same_each_time_and_batches_differ_by_seed() -> None:
    one, other = (models.make("tiny_gpt2", "cpu") for _ in range(2))
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    first, again, next_one = (models.batch_of("tiny_gpt2", "cpu", seed) for seed in (0, 0, 1))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], next_one[0])
    assert torch.equal(first[0][:, 1:], first[1][:, :-1]), "the next token is to be told"


def test_gpt2_does_not_see_what_comes() -> None:
    model = models.make("tiny_gpt2", "cpu").eval()
    tokens = torch.randint(0, 100, (1, 8))
    changed = tokens.clone()
    changed[0, -1] = (changed[0, -1] + 1) % 100
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])


def test_models_have_the_layers_that_are_computed() -> None:
    images = torch.randn(1, 3, 64, 64)
    vgg = models_images.Vgg((1, 1, 1, 1, 1))
    assert vgg(images).shape == (1, 1000)
    resnet = models_images.ResNet((1, 2, 1, 1), width=8, classes=7)
    assert resnet(images).shape == (1, 7)
    strides = [m.stride for m in resnet.modules() if isinstance(m, torch.nn.Conv2d)]
    assert strides.count((2, 2)) == 1 + 2 * 3, "conv1, and two in each later stage's first block"
