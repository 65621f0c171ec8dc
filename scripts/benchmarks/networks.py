"""Three small networks of PyTorch, each with example inputs: what whole models are tuned on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConvBlock(nn.Module):
    """The second stage's first block of ResNet-18 (He et al. 2016), inference: two convolutions with batch
    norms, and a strided one around them."""

    def __init__(self, inner: int = 64, outer: int = 128, stride: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.around = nn.Conv2d(inner, outer, 1, stride, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outer) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(hidden)) + self.norms[2](self.around(x)))


class TransformerBlock(nn.Module):
    """An encoder block with norms in front (Xiong et al. 2020): attention over 128 tokens, and a layer four
    times as wide with GELU."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.wider, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        depth = width // self.heads
        normed = self.norms[0](x)
        queries, keys, values = (
            layer(normed).view(batch, tokens, self.heads, depth).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        weights = torch.softmax(queries @ keys.transpose(-1, -2) * depth**-0.5, -1)
        x = x + self.out((weights @ values).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.back(F.gelu(self.wider(self.norms[1](x))))


def perceptron() -> nn.Module:
    """Four layers for pictures of 28 x 28 pixels in ten classes."""
    return nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
        nn.Linear(256, 10), nn.Softmax(dim=-1),
    )  # fmt: skip


NETWORKS: Mapping[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "cnn-block": (ConvBlock, (1, 64, 56, 56)),
    "transformer-block": (TransformerBlock, (1, 128, 256)),
    "mlp": (perceptron, (64, 784)),
}
"""How each is made, and the shape of its input, f32."""


def export_network(name: str, folder: Path, seed: int) -> Path:
    """Write `NAME.pt2`, with weights, statistics of batch norms and example inputs drawn at random."""
    make, shape = NETWORKS[name]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = make().eval()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.running_mean, -0.5, 0.5)  # type: ignore[arg-type]
                nn.init.uniform_(module.running_var, 0.5, 2.0)  # type: ignore[arg-type]
        program = torch.export.export(model, (torch.randn(shape),))
    path = folder / f"{name}.pt2"
    torch.export.save(program, path)
    return path
