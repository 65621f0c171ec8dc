from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from gnnperf.errors import InputError
from gnnperf.frontends.operators import Convolution, Elementwise, LayerNorm, MatMul, Softmax, load_model

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
    assert operators[0] == Convolution(2, 3, 8, 8, 8, 3, 1, 1)
    assert operators[-1] == MatMul(2, 10, 512, linear=True, epilogue=("bias",))


def test_what_is_not_known_is_counted(models: str) -> None:
    model = load_model(f"{models}:odd")
    assert sum(model.left_out.values()) >= 1
    assert Elementwise("add", 16, 2) in model.operators


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (":wrong", "expected (module, example inputs), got int"),
        (":nothing", "has no function 'nothing'"),
        ("", "expected file.py:function"),
        (":broken", "cannot be exported: no weights"),
    ],
)
def test_mistakes(models: str, function: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(models + function)
    assert message in str(caught.value)
    with pytest.raises(InputError, match=r"no file nowhere\.pt2"):
        load_model("nowhere.pt2")
