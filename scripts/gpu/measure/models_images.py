"""ResNet and VGG in plain torch, as they are commonly published: sizes, strides, initial values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

CLASSES = 1000
EXPANSION = 4


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut; the 3 x 3 one strides."""

    def __init__(self, inputs: int, inner: int, stride: int) -> None:
        super().__init__()
        outputs = EXPANSION * inner
        self.conv1, self.bn1 = _convolution(inputs, inner, 1), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = _convolution(inner, inner, 3, stride), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = _convolution(inner, outputs, 1), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                _convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    """Bottleneck ResNet (He et al., CVPR 2016); `blocks` of each stage."""

    def __init__(self, blocks: Sequence[int], width: int = 64, classes: int = CLASSES) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        channels = width
        stages = []
        for number, count in enumerate(blocks):
            inner, stride = width * 2**number, 1 if number == 0 else 2
            stage = []
            for block in range(count):
                stage.append(Bottleneck(channels, inner, stride if block == 0 else 1))
                channels = EXPANSION * inner
            stages.append(nn.Sequential(*stage))
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        y = self.stages(y).mean(dim=(2, 3))
        scores: torch.Tensor = self.fc(y)
        return scores


class Vgg(nn.Module):
    """VGG without normalisation (Simonyan and Zisserman, ICLR 2015); `blocks`: convolutions.

    No dropout: runs that are compared have to compute the same.
    """

    def __init__(self, blocks: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for count, filters in zip(blocks, (64, 128, 256, 512, 512), strict=True):
            for _ in range(count):
                layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU()]
                channels = filters
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7))
        self.classifier = nn.Sequential(
            nn.Linear(49 * channels, 4096),
            nn.ReLU(),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Linear(4096, CLASSES),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.classifier(self.features(x).flatten(1))
        return scores
