from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from gnnperf.errors import InputError
from gnnperf.frontends.operators import (
    CapturedModel,
    Convolution,
    Elementwise,
    Embedding,
    LayerNorm,
    MatMul,
    Operator,
    Pooling,
    Reduction,
    Softmax,
    load_model,
)
from gnnperf.frontends.operators.torch_models import capture
from gnnperf.frontends.torch_modules import export_module

MODELS = """
import torch
from torch import nn

def block():
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, activation="gelu")
    return layer, (torch.randn(2, 16, 64),)

def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)), (
        torch.randn(2, 3, 8, 8),)

class Odd(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x).real + x

def odd():
    return Odd(), (torch.randn(4, 4),)

def half():
    return nn.Sequential(nn.Linear(8, 4), nn.GELU()).bfloat16(), (torch.randn(2, 8).bfloat16(),)

class Ids(nn.Module):
    def forward(self, x):
        return (x + 1).half() * 2

def ids():
    return Ids(), (torch.arange(6),)

class Waves(nn.Module):
    def forward(self, x):
        return x + x

def waves():
    return Waves(), (torch.randn(4, dtype=torch.complex64),)

def wrong():
    return 3

def broken():
    raise ValueError("no weights")

def leaves():
    raise SystemExit(3)
"""


@pytest.fixture
def models(tmp_path: Path) -> str:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return str(path)


def test_a_transformer_block(models: str) -> None:
    model = load_model(f"{models}:block")
    assert not model.left_out
    products = [o for o in model.operators if isinstance(o, MatMul)]
    linear = [(o.m, o.n, o.k) for o in products if o.linear]
    assert linear == [(32, 192, 64), (32, 64, 64), (32, 256, 64), (32, 64, 256)]
    assert [(o.batch, o.m, o.n, o.k) for o in products if not o.linear] == [(8, 16, 16, 16)] * 2
    assert Softmax(128, 16) in model.operators
    assert model.operators.count(LayerNorm(32, 64)) == 2
    assert Elementwise("gelu", 32 * 256) in model.operators
    fused = model.fused().operators
    assert MatMul(32, 256, 64, linear=True, epilogue=("bias", "gelu")) in fused
    assert len(fused) < len(model.operators)


def test_a_saved_program(tmp_path: Path) -> None:
    program = torch.export.export(nn.Linear(8, 4).eval(), (torch.randn(3, 8),))
    torch.export.save(program, tmp_path / "model.pt2")
    assert load_model(str(tmp_path / "model.pt2")).operators == (
        MatMul(3, 4, 8, linear=True, epilogue=("bias",)),
    )


def test_dtypes_are_those_of_the_tensors(models: str) -> None:
    model = load_model(f"{models}:half")
    assert [o.dtype for o in model.operators] == ["bf16", "bf16"]
    assert len(model.fused().operators) == 1
    assert [o.dtype for o in load_model(f"{models}:ids").operators] == ["int64", "int64", "fp16"]
    with pytest.raises(InputError, match=r"expected a dtype out of .*, got 'complex64'"):
        load_model(f"{models}:waves")


def test_convolutions(models: str) -> None:
    operators = load_model(f"{models}:images").operators
    assert operators[0] == Convolution(2, 3, 8, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1))
    assert operators[-1] == MatMul(2, 10, 512, linear=True, epilogue=("bias",))


def test_what_is_not_known_is_counted(models: str) -> None:
    model = load_model(f"{models}:odd")
    assert model.unknown == {"_fft_r2c": 1} and not model.left_out
    assert Elementwise("add", 16, 2) in model.operators


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (":wrong", "expected (module, example inputs), got int"),
        (":nothing", "has no 'nothing'; it has block, broken, "),
        ("", "expected file.py:function"),
        (":broken", "cannot be read: no weights"),
        (":leaves", "cannot be read: 3"),
    ],
)
def test_mistakes(models: str, function: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(models + function)
    assert message in str(caught.value)
    with pytest.raises(InputError, match=r"no file nowhere\.pt2"):
        load_model("nowhere.pt2")


def test_a_model_may_use_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "widths_of_models.py").write_text("WIDTH = 8\n")
    path = tmp_path / "uses_widths.py"
    made = "nn.Linear(WIDTH, 4), (torch.randn(2, WIDTH),)"
    path.write_text(f"from widths_of_models import WIDTH\n{MODELS}\ndef one():\n    return {made}\n")
    assert load_model(f"{path}:one").operators == (MatMul(2, 4, 8, linear=True, epilogue=("bias",)),)


def captured(
    function: Callable[..., torch.Tensor], *inputs: torch.Tensor, **parts: nn.Module
) -> CapturedModel:
    """What a module launches that has these parts and computes function(module, *inputs)."""

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *x: torch.Tensor) -> torch.Tensor:
            return function(self, *x)

    return capture(export_module(Module(), inputs, "module"), "module")


def test_quantised_products_are_of_what_they_multiply() -> None:
    eights = captured(lambda _, a, b: torch._int_mm(a, b), *(torch.ones(32, 32, dtype=torch.int8),) * 2)
    assert eights.operators == (MatMul(32, 32, 32, dtype="int8"),)
    narrow, scale = torch.ones(32, 32).to(torch.float8_e4m3fn), torch.ones(1)
    floats = captured(
        lambda _, a, s: torch._scaled_mm(a, a.t(), s, s, out_dtype=torch.bfloat16), narrow, scale
    )
    assert floats.operators == (MatMul(32, 32, 32, dtype="fp8"),)


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (nn.Conv1d(4, 8, 5, 3, 2, 2), (2, 4, 50), Convolution(2, 4, 8, (50,), (5,), (3,), (2,), (2,))),
        (
            nn.Conv2d(4, 8, (3, 5), (2, 1), (1, 2), groups=2), (1, 4, 9, 7),
            Convolution(1, 4, 8, (9, 7), (3, 5), (2, 1), (1, 2), (1, 1), groups=2),
        ),
        (
            nn.Conv3d(3, 4, (1, 3, 3), padding="same"), (3, 5, 8, 9),
            Convolution(1, 3, 4, (5, 8, 9), (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
        ),
    ],
)  # fmt: skip
def test_convolutions_of_any_shape(layer: nn.Module, shape: tuple[int, ...], expected: Convolution) -> None:
    x = torch.randn(shape)
    first, bias = captured(lambda self, x: self.layer(x), x, layer=layer).operators
    assert first == expected
    y = layer(x)
    assert bias == Elementwise("add", y.numel())
    assert expected.out_size == tuple(y.shape[-len(expected.size) :])
    taps = math.prod(expected.kernel) * expected.in_channels // expected.groups
    assert first.workload().flops == 2 * y.numel() * taps


@pytest.mark.parametrize(("stride", "kernel"), [(1, 3), (2, 4), (3, 3)])
def test_a_transposed_convolution_costs_what_its_gradient_costs(stride: int, kernel: int) -> None:
    """Every input is multiplied with every tap of the kernel, for every channel that it goes to."""
    layer = nn.ConvTranspose2d(8, 6, kernel, stride, bias=False)
    (one,) = captured(lambda self, x: self.layer(x), torch.randn(2, 8, 40, 50), layer=layer).operators
    assert one.workload().flops == pytest.approx(2 * (2 * 40 * 50) * 8 * 6 * kernel**2, rel=0.15)


def test_recurrent_layers_take_a_product_and_a_pointwise_kernel_per_step() -> None:
    lstm = nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)
    model = captured(lambda self, x: self.lstm(x)[0], torch.randn(4, 10, 16), lstm=lstm)
    first, second = MatMul(40, 128, 16, linear=True), MatMul(40, 128, 64, linear=True)
    steps = (MatMul(4, 128, 32, linear=True), Elementwise("sigmoid", 4 * 128)) * 10
    assert model.operators == (first, *steps) * 2 + (second, *steps) * 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda _, x: torch.einsum("bij,kj->bik", x, x[0]), MatMul(8 * 16, 16, 32)),
        (lambda _, x: functional.group_norm(x, 4), LayerNorm(32, 128)),
        (lambda _, x: functional.instance_norm(x), LayerNorm(128, 32)),
        (lambda _, x: x.argmax(-1), Reduction("add", 128, 32)),
        (lambda _, x: torch.logsumexp(x, 1), Reduction("add", 256, 16)),
        (lambda _, x: x.max(1)[0], Reduction("add", 256, 16)),
        (lambda _, x: x.min(), Reduction("add", 1, 4096)),
        (lambda _, x: x.mean((0, 2)), Reduction("add", 16, 256)),
        (lambda _, x: torch.linalg.norm(x), Reduction("add", 1, 4096)),
        (lambda _, x: x[0, 0] @ x[0].T, Reduction("add", 16, 32)),
        (lambda _, x: x[0, 0] @ x.mT, Reduction("add", 128, 32)),
        (lambda _, x: x @ x[0, 0], Reduction("add", 128, 32)),
        (lambda _, x: x[0, 0] @ x[0, 1], Reduction("add", 1, 32)),
        (lambda _, x: torch.dot(x[0, 0], x[0, 1]), Reduction("add", 1, 32)),
        (lambda _, x: torch.addmv(x[0, :, 0], x[0], x[0, 0]), Reduction("add", 16, 32)),
        (lambda _, x: torch.einsum("bij,bij->b", x, x), Reduction("add", 8, 2 * 16 * 32)),
        (lambda _, x: torch.baddbmm(x[:, :, :16], x, x.mT), MatMul(16, 16, 32, batch=8, epilogue=("add",))),
        (lambda _, x: functional.interpolate(x, scale_factor=2), Elementwise("copy", 8192)),
        (lambda _, x: functional.interpolate(x, scale_factor=2, mode="linear"), Elementwise("copy", 8192)),
        (lambda _, x: functional.pixel_shuffle(x[None, :4], 2), Elementwise("copy", 2048)),
        (lambda _, x: x[:, torch.tensor([0, 2])], Elementwise("copy", 512)),
        (lambda _, x: functional.max_pool1d(x, 4, 2), Pooling("max", 128, (15,), (4,), (2,))),
        (lambda _, x: functional.elu(x), Elementwise("exp", 4096)),
        (lambda _, x: torch.maximum(x, x * 1), Elementwise("max", 4096, 2)),
        (lambda _, x: torch.max(x, x * 1), Elementwise("max", 4096, 2)),
        (lambda _, x: torch.cumsum(x, 1), Elementwise("add", 4096)),
        (lambda _, x: x.transpose(1, 2).contiguous(), Elementwise("copy", 4096)),
        (lambda _, x: x.transpose(1, 2).reshape(8, -1), Elementwise("copy", 4096)),
    ],
)  # fmt: skip
def test_operators_as_their_libraries_run_them(
    function: Callable[..., torch.Tensor], expected: Operator
) -> None:
    model = captured(function, torch.randn(8, 16, 32))
    assert expected in model.operators
    assert not model.unknown and not model.left_out


@pytest.mark.parametrize("function", [lambda _, x: x @ x, lambda _, x: x if x.sum() > 0 else -x])
def test_what_torch_cannot_export_is_one_error_and_no_log(
    function: Callable[..., torch.Tensor], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="torch cannot export 'module'"):
        captured(function, torch.randn(2, 9))
    assert capfd.readouterr().err == ""
    assert not logging.root.manager.disable


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_an_operator_that_is_made_of_itself(dimensions: int) -> None:
    """PyTorch defines `upsample_nearest2d` by itself, for another kind of tensor."""
    layer, x = nn.Upsample(scale_factor=2.0), torch.randn(1, 3, *(4,) * dimensions)
    model = captured(lambda self, x: self.layer(x), x, layer=layer)
    assert model.operators == (Elementwise("copy", 3 * 8**dimensions),)


def test_bags_of_an_embedding_read_the_rows_that_they_sum() -> None:
    bags = nn.EmbeddingBag(10_000, 64)
    model = captured(lambda self, i: self.bags(i), torch.zeros(8, 16, dtype=torch.int64), bags=bags)
    assert model.operators == (Embedding(8 * 16, 64, 10_000),) and not model.unknown


def test_views_launch_nothing() -> None:
    x = torch.randn(4, 6, 8)
    model = captured(lambda _, x: x.contiguous().reshape(24, 8).t()[1:].chunk(2)[0].flatten(1).relu(), x)
    assert model.operators == (Elementwise("relu", 4 * 24),)


def test_an_operator_that_is_not_known_counts_what_it_moves() -> None:
    model = captured(lambda _, x: torch.topk(x, 2, -1)[0], torch.randn(4, 64))
    assert model.unknown == {"topk": 1}
    work = model.operators[0].workload()
    assert work.read_bytes >= 4 * 4 * 64 and work.written_bytes >= 4 * 2 * 4
