"""Operators as TVM's users make them: `OPERATORS` lists, by name, kind and way of making. Each is a function
without arguments that gives what `gnnperf retrieve` takes."""

# TVMScript is Python only to the eye.
# mypy: ignore-errors

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tvm
from tvm import relax, te, tirx, topi
from tvm.script import tirx as T

OPERATORS: dict[str, tuple[str, str]] = {}
"""Name -> kind, and how it is made: topi, te, TVMScript, relax or torch."""

Make = Callable[[], Any]


def operator(name: str, kind: str, way: str, make: Make) -> None:
    OPERATORS[name] = kind, way
    globals()[name] = make


def of_topi(
    name: str, kind: str, work: Callable[..., Any], *shapes: Sequence[Any], way: str = "topi"
) -> None:
    """Of placeholders: a shape, with a type as its last element where that is not float32."""

    def make() -> list[Any]:
        given = [placeholder(f"x{n}", shape) for n, shape in enumerate(shapes)]
        found = work(*given)
        return [*given, *(found if isinstance(found, list | tuple) else [found])]

    operator(name, kind, way, make)


def placeholder(name: str, shape: Sequence[Any]) -> Any:
    dtype = str(shape[-1]) if isinstance(shape[-1], str) else "float32"
    return te.placeholder([n for n in shape if not isinstance(n, str)], dtype, name)


def under_target(work: Callable[..., Any], *given: Any) -> Any:
    """What asks which target it is for."""
    with tvm.target.Target("llvm"):
        return work(*given)


# --------------------------------------------------------------------------- products

nn = topi.nn
of_topi("dense", "product", nn.dense, (64, 256), (128, 256))
of_topi(
    "dense_bias_relu", "product", lambda x, w, b: nn.relu(nn.dense(x, w, b)), (64, 256), (128, 256), (128,)
)
of_topi("dense_of_one_row", "product", nn.dense, (1, 512), (1024, 512))
for a in (False, True):
    for b in (False, True):
        left, right = ((4, 96, 64) if a else (4, 64, 96)), ((4, 80, 96) if b else (4, 96, 80))
        which = ("t" if a else "n") + ("t" if b else "n")
        work = partial(nn.batch_matmul, transpose_a=a, transpose_b=b)
        of_topi(f"batch_matmul_{which}", "product", work, left, right)
of_topi("matmul_tn", "product", partial(topi.matmul, transp_a=True), (96, 64), (96, 80))
of_topi("matmul_bf16", "product", nn.matmul, (64, 96, "bfloat16"), (96, 80, "bfloat16"))
of_topi("matmul_fp16", "product", nn.matmul, (64, 96, "float16"), (96, 80, "float16"))
of_topi(
    "einsum", "product", lambda a, b: topi.einsum("bhik,bhjk->bhij", a, b), (2, 4, 48, 32), (2, 4, 56, 32)
)
of_topi("tensordot", "product", lambda a, b: topi.tensordot(a, b, 2), (32, 16, 24), (16, 24, 40))
of_topi(
    "dense_int8",
    "quantised",
    lambda x, w: nn.dense(x, w, None, "int32"),
    (64, 256, "uint8"),
    (128, 256, "int8"),
)
of_topi(
    "dense_requantised",
    "quantised",
    lambda x, w: topi.cast(
        topi.clip(topi.right_shift(nn.dense(x, w, None, "int32"), tirx.const(8)), -128, 127), "int8"
    ),
    (64, 256, "int8"),
    (128, 256, "int8"),
)

# --------------------------------------------------------------------------- convolutions

of_topi("conv1d_ncw", "convolution", lambda x, w: nn.conv1d_ncw(x, w, 1, 1), (1, 32, 128), (48, 32, 3))
of_topi("conv1d_nwc", "convolution", lambda x, w: nn.conv1d_nwc(x, w, 1, 1), (1, 128, 32), (3, 32, 48))
of_topi(
    "conv2d_nchw", "convolution", lambda x, w: nn.conv2d_nchw(x, w, 1, 1, 1), (1, 32, 28, 28), (48, 32, 3, 3)
)
of_topi(
    "conv2d_nhwc", "convolution", lambda x, w: nn.conv2d_nhwc(x, w, 1, 1, 1), (1, 28, 28, 32), (3, 3, 32, 48)
)
of_topi(
    "conv2d_hwcn", "convolution", lambda x, w: nn.conv2d_hwcn(x, w, 1, 1, 1), (14, 14, 32, 4), (3, 3, 32, 48)
)
of_topi(
    "conv2d_stride_2_bias_relu",
    "convolution",
    lambda x, w, b: nn.relu(topi.add(nn.conv2d_nhwc(x, w, 2, 1, 1), b)),
    (1, 28, 28, 32),
    (3, 3, 32, 48),
    (48,),
)
of_topi(
    "conv2d_dilated",
    "convolution",
    lambda x, w: nn.conv2d_nchw(x, w, 1, 2, 2),
    (1, 16, 28, 28),
    (24, 16, 3, 3),
)
of_topi(
    "conv2d_nchwc",
    "packed convolution",
    lambda x, w: under_target(nn.conv2d_NCHWc, x, w, 1, 1, 1, "NCHW16c", "NCHW16c"),
    (1, 2, 28, 28, 16),
    (3, 2, 3, 3, 16, 16),
)
of_topi(
    "conv2d_nchwc_int8",
    "quantised",
    lambda x, w: under_target(nn.conv2d_NCHWc_int8, x, w, 1, 1, 1, "NCHW16c", "NCHW16c", "int32"),
    (1, 2, 28, 28, 16, "uint8"),
    (3, 2, 3, 3, 4, 16, 4, "int8"),
)
of_topi(
    "conv2d_nhwc_int8",
    "quantised",
    lambda x, w: nn.conv2d_nhwc(x, w, 1, 1, 1, "int32"),
    (1, 28, 28, 32, "int8"),
    (3, 3, 32, 48, "int8"),
)
of_topi(
    "conv2d_winograd_nhwc",
    "winograd",
    lambda x, w: nn.conv2d_winograd_nhwc(x, w, 1, 1, 1, "float32"),
    (1, 28, 28, 32),
    (3, 3, 32, 32),
)
of_topi(
    "conv2d_winograd_nchw",
    "winograd",
    lambda x, w: nn.conv2d_winograd_nchw(x, w, 1, 1, 1, "float32"),
    (1, 32, 28, 28),
    (32, 32, 3, 3),
)
of_topi(
    "conv3d_ncdhw",
    "convolution",
    lambda x, w: nn.conv3d_ncdhw(x, w, 1, 1, 1, 1),
    (1, 8, 8, 14, 14),
    (16, 8, 3, 3, 3),
)
of_topi(
    "conv3d_ndhwc",
    "convolution",
    lambda x, w: nn.conv3d_ndhwc(x, w, 1, 1, 1, 1),
    (1, 8, 14, 14, 8),
    (3, 3, 3, 8, 16),
)
of_topi(
    "depthwise_conv2d_nchw",
    "depthwise",
    lambda x, w: nn.depthwise_conv2d_nchw(x, w, 1, 1, 1),
    (1, 64, 28, 28),
    (64, 1, 3, 3),
)
of_topi(
    "depthwise_conv2d_nhwc_5x5",
    "depthwise",
    lambda x, w: nn.depthwise_conv2d_nhwc(x, w, 1, 2, 1),
    (1, 28, 28, 64),
    (5, 5, 64, 1),
)
of_topi(
    "group_conv2d_nchw",
    "grouped",
    lambda x, w: nn.group_conv2d_nchw(x, w, 1, 1, 1, 4),
    (1, 32, 28, 28),
    (48, 8, 3, 3),
)
of_topi(
    "group_conv2d_nhwc",
    "grouped",
    lambda x, w: nn.group_conv2d_nhwc(x, w, 1, 1, 1, 4),
    (1, 28, 28, 32),
    (3, 3, 8, 48),
)
of_topi(
    "conv1d_transpose_ncw",
    "transposed",
    lambda x, w: nn.conv1d_transpose_ncw(x, w, 2, 1, "float32", 0),
    (1, 32, 64),
    (32, 24, 4),
)
of_topi(
    "conv2d_transpose_nchw",
    "transposed",
    lambda x, w: nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0)),
    (1, 32, 14, 14),
    (32, 24, 4, 4),
)
of_topi(
    "conv3d_transpose_ncdhw",
    "transposed",
    lambda x, w: nn.conv3d_transpose_ncdhw(x, w, (2, 2, 2), (1, 1, 1), "float32", (0, 0, 0)),
    (1, 8, 4, 7, 7),
    (8, 8, 4, 4, 4),
)
of_topi(
    "dilation2d",
    "convolution",
    lambda x, w: topi.image.dilation2d_nchw(x, w, 1, 1, 1),
    (1, 16, 28, 28),
    (16, 3, 3),
)

# --------------------------------------------------------------------------- pooling

of_topi(
    "max_pool2d",
    "pooling",
    lambda x: nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"),
    (1, 64, 56, 56),
)
of_topi(
    "avg_pool2d_nhwc",
    "pooling",
    lambda x: nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg", layout="NHWC"),
    (1, 56, 56, 64),
)
of_topi(
    "max_pool1d", "pooling", lambda x: nn.pool1d(x, [3], [2], [1], [1, 1], "max", layout="NCW"), (8, 64, 256)
)
of_topi(
    "avg_pool3d",
    "pooling",
    lambda x: nn.pool3d(x, (2, 2, 2), (2, 2, 2), (1, 1, 1), (0,) * 6, "avg", layout="NCDHW"),
    (1, 32, 16, 28, 28),
)
of_topi("global_avg_pool", "pooling", lambda x: nn.global_pool(x, "avg"), (4, 256, 14, 14))
of_topi("adaptive_avg_pool", "pooling", lambda x: nn.adaptive_pool(x, (7, 7), "avg"), (1, 128, 28, 28))

# --------------------------------------------------------------------------- rows

of_topi("softmax", "softmax", lambda x: nn.softmax(x, 1), (256, 512))
of_topi("softmax_outer_axis", "softmax", lambda x: nn.softmax(x, 1), (8, 64, 128))
of_topi("log_softmax", "softmax", nn.log_softmax, (256, 512))
of_topi("layer_norm", "norm", lambda x, g, b: nn.layer_norm(x, g, b, [1]), (256, 512), (512,), (512,))
of_topi("rms_norm", "norm", lambda x, g: nn.rms_norm(x, g, [1]), (256, 512), (512,))
of_topi(
    "group_norm", "norm", lambda x, g, b: nn.group_norm(x, g, b, 8, 1, [2, 3]), (2, 64, 28, 28), (64,), (64,)
)
of_topi(
    "instance_norm",
    "norm",
    lambda x, g, b: nn.instance_norm(x, g, b, 1, [2, 3]),
    (2, 64, 28, 28),
    (64,),
    (64,),
)
of_topi(
    "batch_norm",
    "norm",
    lambda x, *of: nn.batch_norm(x, *of, axis=1, training=False)[0],
    (2, 64, 28, 28),
    (64,),
    (64,),
    (64,),
    (64,),
)
of_topi("local_response_norm", "norm", lambda x: nn.lrn(x, 5), (1, 64, 28, 28))
of_topi("sum_last_axis", "reduction", lambda x: topi.sum(x, -1), (512, 512))
of_topi("sum_first_axis", "reduction", lambda x: topi.sum(x, 0), (512, 512))
of_topi("sum_axes_0_2", "reduction", lambda x: topi.sum(x, (0, 2)), (32, 64, 128))
of_topi("max_all", "reduction", topi.max, (512, 512))
of_topi("prod_middle_axis", "reduction", lambda x: topi.prod(x, 1), (64, 32, 64))
of_topi("argmax", "argmax", lambda x: topi.argmax(x, 1), (256, 512))
of_topi("argmin_first_axis", "argmax", lambda x: topi.argmin(x, 0), (512, 256))
of_topi("cumsum", "scan", lambda x: topi.cumsum(x, 1), (128, 256))

# --------------------------------------------------------------------------- moving data

of_topi("gather", "gather", lambda x, i: topi.gather(x, 1, i), (128, 256), (128, 64, "int32"))
of_topi("gather_nd", "gather", topi.gather_nd, (128, 256), (2, 1024, "int32"))
of_topi("take_rows", "gather", lambda x, i: topi.take(x, i, 0), (1000, 64), (512, "int32"))
of_topi("take_clipped", "gather", lambda x, i: topi.take(x, i, 1, mode="clip"), (64, 500), (256, "int64"))
of_topi(
    "scatter_elements",
    "scatter",
    lambda x, i, u: topi.scatter_elements(x, i, u, 1),
    (64, 256),
    (64, 32, "int32"),
    (64, 32),
)
of_topi(
    "scatter_nd_add",
    "scatter",
    lambda x, i, u: topi.scatter_nd(x, i, u, "add"),
    (256, 64),
    (1, 128, "int32"),
    (128, 64),
)
of_topi("resize_linear", "resize", lambda x: topi.image.resize2d(x, (0.0,) * 4, (56, 56)), (1, 32, 28, 28))
of_topi(
    "resize_nearest_nhwc",
    "resize",
    lambda x: topi.image.resize2d(x, (0.0,) * 4, (56, 56), "NHWC", "nearest_neighbor", "asymmetric", "floor"),
    (1, 28, 28, 32),
)
of_topi(
    "resize_cubic",
    "resize",
    lambda x: topi.image.resize2d(x, (0.0,) * 4, (42, 42), method="cubic"),
    (1, 16, 28, 28),
)
of_topi(
    "concatenate", "layout", lambda a, b, c: topi.concatenate((a, b, c), 1), (64, 128), (64, 64), (64, 256)
)
of_topi("pad", "layout", lambda x: nn.pad(x, (0, 0, 1, 1), (0, 0, 2, 1)), (2, 64, 28, 28))
of_topi("mirror_pad", "layout", lambda x: nn.mirror_pad(x, (0, 0, 2, 2), (0, 0, 2, 2)), (2, 64, 28, 28))
of_topi("strided_slice", "layout", lambda x: topi.strided_slice(x, [0, 3], [256, 400], [1, 2]), (256, 512))
of_topi("transpose", "layout", lambda x: topi.transpose(x, (0, 2, 3, 1)), (2, 64, 28, 28))
of_topi("layout_transform", "layout", lambda x: topi.layout_transform(x, "NCHW", "NCHW16c"), (2, 64, 28, 28))
of_topi("space_to_depth", "layout", lambda x: nn.space_to_depth(x, 2), (2, 32, 56, 56))
of_topi("tile", "layout", lambda x: topi.tile(x, (4, 2)), (64, 256))
of_topi(
    "one_hot",
    "layout",
    lambda i: topi.one_hot(i, tirx.const(1.0), tirx.const(0.0), 512, -1, "float32"),
    (256, "int32"),
)
of_topi("upper_triangle", "layout", lambda x: topi.trilu(x, tirx.const(0), True), (512, 512))
of_topi("where", "layout", topi.where, (256, 512, "bool"), (256, 512), (256, 512))

# --------------------------------------------------------------------------- elementwise

for dtype in ("float32", "float16", "bfloat16", "int8"):
    of_topi(
        f"add_relu_{dtype}",
        "elementwise",
        lambda a, b: nn.relu(topi.add(a, b)),
        (256, 512, dtype),
        (256, 512, dtype),
    )
of_topi("sigmoid_fp16", "elementwise", topi.sigmoid, (256, 512, "float16"))
of_topi(
    "erf_gelu", "elementwise", lambda x: x * (topi.erf(x * tirx.const(0.70710678)) * 0.5 + 0.5), (256, 512)
)
of_topi(
    "quantise",
    "quantised",
    lambda x: topi.cast(topi.clip(topi.round(x * 16.0), -128, 127), "int8"),
    (256, 512),
)
of_topi("dequantise", "quantised", lambda x: topi.cast(x, "float32") * 0.0625, (256, 512, "int8"))

# --------------------------------------------------------------------------- te, TVMScript


def stencil() -> list[Any]:
    x = te.placeholder((258, 258), name="x")
    around = lambda i, j: x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]  # noqa: E731
    return [x, te.compute((256, 256), lambda i, j: around(i, j) * 0.25, name="y")]


def attention_in_te() -> list[Any]:
    """Scores, rows that sum to one, and values."""
    q, k, v = (te.placeholder((4, 64, 32), name=name) for name in "qkv")
    scores = topi.nn.batch_matmul(q, k) * tirx.const(32**-0.5)
    weights = topi.nn.softmax(scores, 2)
    return [q, k, v, topi.nn.batch_matmul(weights, v, transpose_b=False)]


operator("stencil", "stencil", "te", stencil)
operator("attention", "attention", "te", attention_in_te)


@T.prim_func(s_tir=True)
def product_in_tvmscript(
    A: T.Buffer((64, 96), "float32"), B: T.Buffer((96, 80), "float32"), C: T.Buffer((64, 80), "float32")
):
    for i, j, k in T.grid(64, 80, 96):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


OPERATORS["product_in_tvmscript"] = "product", "TVMScript"


# --------------------------------------------------------------------------- relax, torch


def relaxed(build: Callable[..., Any], *shapes: Sequence[int]) -> Any:
    """A relax module of one operator of relax."""
    builder = relax.BlockBuilder()
    given = [relax.Var(f"x{n}", relax.TensorType(list(shape), "float32")) for n, shape in enumerate(shapes)]
    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(build(*given))
        builder.emit_func_output(result)
    return builder.get()


def of_relax(name: str, kind: str, build: Callable[..., Any], *shapes: Sequence[int]) -> None:
    operator(name, kind, "relax", lambda: relaxed(build, *shapes))


of_relax("relax_matmul", "product", relax.op.matmul, (64, 96), (96, 80))
of_relax(
    "relax_conv2d",
    "convolution",
    lambda x, w: relax.op.nn.conv2d(x, w, padding=1),
    (1, 16, 28, 28),
    (24, 16, 3, 3),
)
of_relax("relax_softmax", "softmax", lambda x: relax.op.nn.softmax(x, axis=-1), (256, 512))
of_relax("relax_mean", "reduction", lambda x: relax.op.mean(x, axis=[1, 3]), (4, 32, 28, 28))


def of_torch(name: str, kind: str, module: Callable[[Any], Any], *shapes: Sequence[int]) -> None:
    """What TVM imports of a torch module, with its weights as arguments. module: given `torch`."""

    def make() -> Any:
        import torch
        from tvm.relax.frontend.torch import from_exported_program

        torch.manual_seed(0)
        given = tuple(torch.randn(*shape) for shape in shapes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about torch's own use of torch
            program = torch.export.export(module(torch).eval(), given)
            found = from_exported_program(program, keep_params_as_input=True)
        return relax.frontend.detach_params(found)[0]

    operator(name, kind, "torch", make)


def lstm_cell(torch: Any) -> Any:
    class Cell(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.cell = torch.nn.LSTMCell(64, 64)

        def forward(self, x: Any, h: Any, c: Any) -> Any:
            return self.cell(x, (h, c))[0]

    return Cell()


of_torch(
    "torch_linear_gelu", "product", lambda t: t.nn.Sequential(t.nn.Linear(128, 256), t.nn.GELU()), (64, 128)
)
of_torch(
    "torch_conv_norm_relu",
    "convolution",
    lambda t: t.nn.Sequential(t.nn.Conv2d(16, 32, 3, padding=1), t.nn.BatchNorm2d(32), t.nn.ReLU()),
    (1, 16, 28, 28),
)
of_torch(
    "torch_attention",
    "attention",
    lambda t: t.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0),
    (1, 48, 64),
)
of_torch("torch_gru_cell", "rnn cell", lambda t: t.nn.GRUCell(64, 64), (16, 64), (16, 64))
of_torch("torch_lstm_cell", "rnn cell", lstm_cell, (16, 64), (16, 64), (16, 64))
of_torch("torch_embedding_norm", "norm", lambda t: t.nn.LayerNorm(256), (128, 256))
