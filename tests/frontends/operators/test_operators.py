from __future__ import annotations

import dataclasses

import pytest

from gnnperf.errors import InputError
from gnnperf.frontends.operators import (
    Convolution,
    Elementwise,
    Embedding,
    FusedAttention,
    LayerNorm,
    MatMul,
    Operator,
    Pooling,
    Reduction,
    Softmax,
    parse_operator,
    parse_operators,
)

FLOAT = 4


def test_products() -> None:
    bmm = MatMul(64, 128, 256, batch=8).workload()
    assert (bmm.kind, bmm.batch, bmm.m, bmm.n, bmm.k) == ("contraction", 8, 64, 128, 256)
    assert not bmm.transposed
    assert bmm.flops == 2 * 8 * 64 * 128 * 256
    assert bmm.read_bytes == FLOAT * 8 * (64 * 256 + 256 * 128)
    assert bmm.written_bytes == FLOAT * 8 * 64 * 128
    linear = MatMul(64, 128, 256, linear=True).workload()
    assert (linear.batch, linear.m, linear.n, linear.k) == (1, 64, 128, 256)
    assert linear.transposed


def test_an_epilogue_reads_only_what_it_adds() -> None:
    plain = MatMul(64, 128, 256, linear=True).workload()
    fused = MatMul(64, 128, 256, linear=True, epilogue=("bias", "gelu", "add")).workload()
    assert fused.read_bytes - plain.read_bytes == FLOAT * (128 + 64 * 128)
    assert fused.written_bytes == plain.written_bytes
    assert (fused.kind, fused.m, fused.n, fused.k) == ("contraction", 64, 128, 256)


def test_tensors_are_stored_as_the_dtype_is() -> None:
    plain = parse_operator("linear:M=64,N=128,K=256")
    for dtype, size in {"fp64": 8, "tf32": 4, "bf16": 2, "fp8": 1, "int8": 1}.items():
        work = parse_operator(f"linear:M=64,N=128,K=256,dtype={dtype}").workload()
        assert (work.dtype, work.flops) == (dtype, plain.workload().flops)
        assert work.read_bytes * FLOAT == plain.workload().read_bytes * size
    embedding = dataclasses.replace(Embedding(8, 16, 100), dtype="fp16").workload()
    assert embedding.read_bytes == 2 * 8 * 16 + 8 * 8  # indices stay int64
    with pytest.raises(InputError, match=r"expected a dtype out of fp64, fp32, tf32, .*, got 'fp4'"):
        parse_operator("softmax:B=8,H=8,dtype=fp4")


def test_convolutions_are_products() -> None:
    work = Convolution(2, 16, 32, (28, 28), (3, 3), (1, 1), (1, 1)).workload()
    assert (work.kind, work.batch, work.m, work.n, work.k) == ("contraction", 1, 2 * 28 * 28, 32, 16 * 9)
    assert work.written_bytes == FLOAT * 2 * 32 * 28 * 28
    depthwise = Convolution(2, 16, 16, (28, 28), (3, 3), (1, 1), (1, 1), groups=16).workload()
    assert (depthwise.kind, depthwise.rows, depthwise.n) == ("map", 2 * 16 * 28 * 28, 1)
    grouped = Convolution(2, 16, 32, (28, 28), (3, 3), (1, 1), (1, 1), groups=4).workload()
    assert (grouped.kind, grouped.batch, grouped.n, grouped.k) == ("contraction", 4, 8, 4 * 9)


def test_attention_in_one_kernel() -> None:
    work = FusedAttention(16, 512, 256, 64).workload()
    assert (work.kind, work.batch, work.m, work.n, work.k) == ("contraction", 16, 512, 64, 512)
    assert work.flops == 2 * 2 * 16 * 512 * 256 * 64  # two products
    assert work.read_bytes == FLOAT * 16 * (512 + 2 * 256) * 64
    assert work.written_bytes == FLOAT * 16 * 512 * 64
    families = [one.family for one in parse_operators("attention:B=16,M=512,N=256,K=64")]
    assert families == ["matmul", "elementwise", "softmax", "matmul"]


def test_an_embedding_reads_the_rows_it_is_asked_for() -> None:
    few, all_rows = (Embedding(rows, 128, 1000).workload() for rows in (10, 5000))
    assert few.read_bytes == 8 * 10 + FLOAT * 10 * 128
    assert all_rows.read_bytes == 8 * 5000 + FLOAT * 1000 * 128


@pytest.mark.parametrize(
    ("operator", "passes", "read", "written"),
    [
        (Softmax(10, 100), 3, 1000, 1000),
        (LayerNorm(10, 100), 2, 1200, 1000),
        (Reduction("add", 10, 100), 1, 1000, 10),
    ],
)
def test_rows(operator: Operator, passes: int, read: int, written: int) -> None:
    work = operator.workload()
    assert (work.kind, work.rows, work.columns, work.passes) == ("rows", 10, 100, passes)
    assert (work.read_bytes, work.written_bytes) == (FLOAT * read, FLOAT * written)


def test_what_touches_everything_once() -> None:
    two, one = Elementwise("add", 1000, 2).workload(), Elementwise("gelu", 1000).workload()
    assert (two.kind, two.read_bytes, one.read_bytes) == ("map", 8000, 4000)
    gathered = Embedding(100, 64, 5000).workload()
    assert gathered.written_bytes == FLOAT * 6400
    assert gathered.read_bytes < FLOAT * 6400 + 8 * 100 + 1  # rows that are gathered, not the table
    pooled = Pooling("max", 32, (10, 10), (2, 2), (2, 2)).workload()
    assert (pooled.kind, pooled.rows, pooled.columns) == ("map", 3200, 1)


def test_graphs_follow_sizes_and_fusion() -> None:
    digests = {
        operator.graph().digest
        for operator in (
            MatMul(64, 64, 64),
            MatMul(64, 64, 128),
            MatMul(64, 64, 64, linear=True),
            MatMul(64, 64, 64, epilogue=("relu",)),
            Elementwise("relu", 4096),
        )
    }
    assert len(digests) == 5


def test_one_line() -> None:
    assert parse_operator("linear:M=3,N=4,K=5") == MatMul(3, 4, 5, linear=True)
    assert parse_operator("bmm:B=2,M=3,N=4,K=5") == MatMul(3, 4, 5, batch=2)
    assert parse_operator("add:B=2,H=3") == Elementwise("add", 6, 2)
    assert parse_operator("addu:B=2,H=3") == Elementwise("add", 6)
    assert parse_operator("relu:B=2,H=3") == Elementwise("relu", 6)
    assert parse_operator("conv:B=1,C=3,O=8,H=9,W=9,K=3,P=1") == Convolution(
        1, 3, 8, (9, 9), (3, 3), (1, 1), (1, 1)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("softmax:B=4096", "softmax needs the sizes B H; see H"),
        ("softmax:B=4096,H=8,Z=1", "see Z"),
        ("bmm:B=x", "expected sizes as B=16,M=512, got 'B=x'"),
        ("softmax:B=0,H=8", "softmax: expected rows of at least 1, got 0"),
        ("conv:B=1,C=64,O=64,H=9,W=9,K=3,G=3", "groups that divide 64 and 64 channels, got 3"),
        ("conv:B=1,C=64,O=64,H=9,W=2,K=3", "kernel that fits the padded input (9, 2), got (3, 3)"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_operator(text)
    assert message in str(caught.value)
