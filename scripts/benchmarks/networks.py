"""Ten small networks of PyTorch of common architectures, each with example inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Inputs = tuple[Tensor, ...]


class ResidualBlock(nn.Module):
    """A basic block of ResNet (He et al. 2016): two convolutions with batch norms, and a way around them."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outer) for _ in range(2))
        same = stride == 1 and inner == outer
        self.around = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        )

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(hidden)) + self.around(x))


def residual_cnn() -> nn.Module:
    """A stem, three stages of a residual block, and a classifier, for pictures of 64 x 64."""
    stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
    stages = [ResidualBlock(32, 32, 1), ResidualBlock(32, 64, 2), ResidualBlock(64, 128, 2)]
    return nn.Sequential(stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


class InvertedResidual(nn.Module):
    """A block of MobileNetV2 (Sandler et al. 2018): wider, depthwise, narrower."""

    def __init__(self, inner: int, outer: int, stride: int, factor: int = 4) -> None:
        super().__init__()
        wide = factor * inner
        self.layers = nn.Sequential(
            nn.Conv2d(inner, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, outer, 1, bias=False), nn.BatchNorm2d(outer),
        )  # fmt: skip
        self.residual = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layers(x)
        return x + found if self.residual else found


def depthwise_cnn() -> nn.Module:
    """Three inverted residuals for pictures of 96 x 96."""
    stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
    blocks = [InvertedResidual(16, 24, 2), InvertedResidual(24, 24, 1), InvertedResidual(24, 40, 2)]
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 10))


class Attention(nn.Module):
    """Attention of several heads (Vaswani et al. 2017)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(
        self, x: Tensor, mask: Tensor, past: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """mask: of bools, what may be looked at. past: keys and values of what came before. The result, and
        keys and values f32[batch, heads, tokens, width / heads]."""
        batch, tokens, width = x.shape
        shape = batch, tokens, self.heads, width // self.heads
        queries, keys, values = (
            layer(x).view(shape).transpose(1, 2) for layer in (self.queries, self.keys, self.values)
        )
        if past is not None:
            keys, values = (torch.cat(both, 2) for both in zip(past, (keys, values), strict=True))
        found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return self.out(found.transpose(1, 2).reshape(batch, tokens, width)), keys, values


def wider_layer(width: int) -> nn.Module:
    """The layer after attention, with its norm."""
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
    )


class TransformerEncoder(nn.Module):
    """Two encoder layers with norms in front (Xiong et al. 2020) over tokens, some of them padding."""

    def __init__(self, words: int = 1000, width: int = 128, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(64, width))
        self.attentions = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.wider = nn.ModuleList(wider_layer(width) for _ in range(layers))

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        """padding: bool[batch, tokens], true where there is none to read. The mean over the others."""
        kept = ~padding
        x = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        for attention, norm, wider in zip(self.attentions, self.norms, self.wider, strict=True):
            x = x + attention(norm(x), kept[:, None, None, :])[0]
            x = x + wider(x)
        return (x * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)


class Decoder(nn.Module):
    """A decoder layer that goes on from cached keys and values: causal among the new tokens."""

    def __init__(self, words: int = 1000, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.attention, self.norm, self.wider = (
            Attention(width, heads),
            nn.LayerNorm(width),
            wider_layer(width),
        )
        self.words = nn.Linear(width, words)

    def forward(self, tokens: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """keys, values: f32[batch, heads, past, depth]. Logits, and the longer caches."""
        x, past, new = self.embedding(tokens), keys.shape[2], tokens.shape[1]
        mask = torch.ones(new, past + new, dtype=torch.bool).tril(past)
        mixed, keys, values = self.attention(self.norm(x), mask, (keys, values))
        x = x + mixed
        x = x + self.wider(x)
        return self.words(x), keys, values


class Recurrent(nn.Module):
    """A recurrent layer over embedded steps, classified by its last state."""

    def __init__(self, layer: nn.GRU | nn.LSTM) -> None:
        super().__init__()
        self.layer, self.classes = layer, nn.Linear(layer.hidden_size, 10)

    def forward(self, x: Tensor) -> Tensor:
        """f32[batch, steps, features] -> f32[batch, 10]."""
        states, _ = self.layer(x)
        found: Tensor = self.classes(states[:, -1])
        return found


class MixerLayer(nn.Module):
    """Of MLP-Mixer (Tolstikhin et al. 2021): over patches, then over channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.patches = nn.Sequential(
            nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches)
        )
        self.channels = wider_layer(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.patches(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(x)


class Mixer(nn.Module):
    """Two mixer layers over patches of 8 x 8 of pictures of 64 x 64."""

    def __init__(self, width: int = 128, layers: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.layers = nn.Sequential(*(MixerLayer(64, width) for _ in range(layers)), nn.LayerNorm(width))
        self.classes = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.classes(self.layers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))
        return found


class UNet(nn.Module):
    """A small U-Net (Ronneberger et al. 2015): down twice, up by a transposed convolution and by upsampling,
    each beside what was there before."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()

        def twice(inner: int, outer: int) -> nn.Module:
            return nn.Sequential(
                nn.Conv2d(inner, outer, 3, padding=1), nn.ReLU(), nn.Conv2d(outer, outer, 3, padding=1),
                nn.ReLU(),
            )  # fmt: skip

        self.fine, self.middle, self.coarse = (
            twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width),
        )  # fmt: skip
        self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.middle_again = twice(4 * width, 2 * width)
        self.wider = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.fine_again = twice(3 * width, width)
        self.classes = nn.Conv2d(width, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.fine(x)
        middle = self.middle(F.max_pool2d(fine, 2))
        coarse = self.coarse(F.max_pool2d(middle, 2))
        middle = self.middle_again(torch.cat([self.up(coarse), middle], 1))
        found: Tensor = self.classes(self.fine_again(torch.cat([self.wider(middle), fine], 1)))
        return found


class GraphConvolution(nn.Module):
    """Two graph convolutions with degrees as norms (Kipf and Welling 2017): gathered along edges, added up
    at nodes."""

    def __init__(self, features: int = 64, width: int = 128, classes: int = 16) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, width), nn.Linear(width, classes)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """x: f32[nodes, features]; edges: i64[2, edges]."""
        sources, targets = edges
        ones = torch.ones(edges.shape[1])
        scale = (1 + torch.zeros(x.shape[0]).index_add(0, targets, ones)).rsqrt()[:, None]

        def spread(h: Tensor) -> Tensor:
            sent = h * scale
            return scale * (sent + torch.zeros_like(h).index_add(0, targets, sent[sources]))

        return spread(self.second(F.relu(spread(self.first(x)))))


class BagOfWords(nn.Module):
    """Means of embeddings, classified (Joulin et al. 2017)."""

    def __init__(self, words: int = 5000, width: int = 128) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(words, width, mode="mean")
        self.layers = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 20))

    def forward(self, words: Tensor, offsets: Tensor) -> Tensor:
        """words: i64[n], of all bags; offsets: i64[bags], where each begins."""
        found: Tensor = self.layers(self.bags(words, offsets))
        return found


def _words_with_padding() -> Inputs:
    lengths = torch.tensor([64, 40, 17, 52])
    return torch.randint(1000, (4, 64)), torch.arange(64) >= lengths[:, None]


def _tokens_and_cache() -> Inputs:
    return torch.randint(1000, (2, 8)), torch.randn(2, 4, 56, 32), torch.randn(2, 4, 56, 32)


def _bags() -> Inputs:
    return torch.randint(5000, (512,)), torch.tensor([0, 60, 100, 180, 256, 300, 390, 450])


NETWORKS: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], Inputs]]] = {
    "residual-cnn": (residual_cnn, lambda: (torch.randn(1, 3, 64, 64),)),
    "depthwise-cnn": (depthwise_cnn, lambda: (torch.randn(4, 3, 96, 96),)),
    "encoder": (TransformerEncoder, _words_with_padding),
    "decoder": (Decoder, _tokens_and_cache),
    "gru": (lambda: Recurrent(nn.GRU(64, 128, batch_first=True)), lambda: (torch.randn(4, 16, 64),)),
    "lstm": (lambda: Recurrent(nn.LSTM(64, 128, batch_first=True)), lambda: (torch.randn(4, 16, 64),)),
    "mlp-mixer": (Mixer, lambda: (torch.randn(4, 3, 64, 64),)),
    "u-net": (UNet, lambda: (torch.randn(1, 3, 64, 64),)),
    "graph-convolution": (
        GraphConvolution, lambda: (torch.randn(512, 64), torch.randint(512, (2, 4096))),
    ),
    "bag-of-words": (BagOfWords, _bags),
}  # fmt: skip
"""How each is made, and its example inputs; weights and inputs are drawn at random."""


def made_network(name: str, seed: int) -> tuple[nn.Module, Inputs]:
    """A network to infer with, with statistics of batch norms drawn at random, and its example inputs."""
    make, inputs = NETWORKS[name]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = make().eval()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.running_mean, -0.5, 0.5)  # type: ignore[arg-type]
                nn.init.uniform_(module.running_var, 0.5, 2.0)  # type: ignore[arg-type]
        return model, inputs()


def export_network(name: str, folder: Path, seed: int) -> Path:
    """Write `NAME.pt2`."""
    model, inputs = made_network(name, seed)
    path = folder / f"{name}.pt2"
    torch.export.save(torch.export.export(model, inputs), path)
    return path
