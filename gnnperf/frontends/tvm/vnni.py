"""TVM's VNNI intrinsic as current LLVM wants it: the operands are vectors of 64 bytes, no longer of 16 words.

Importing this module replaces what TVM registers under the name `dot_16x4_vnni`; the computation that it
stands for stays the same, so that traces made elsewhere fit.
"""
# mypy: ignore-errors
# TVMScript is Python only to the eye.

from tvm.s_tir import TensorIntrin
from tvm.s_tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN
from tvm.script import tirx as T

__all__ = ["VNNI_DOT_16x4_INTRIN"]


@T.prim_func(s_tir=True)
def _dot_product_16x4(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])

        A_u8x4 = A.vload([0], "uint8x4")
        A_i32 = T.reinterpret(A_u8x4, dtype="int32")
        A_i32x16 = T.broadcast(A_i32, 16)
        A_u8x64 = T.reinterpret(A_i32x16, dtype="uint8x64")
        B_i8x64 = B.vload([0, 0], dtype="int8x64")
        C_i32x16 = C.vload([0], dtype="int32x16")

        C[T.ramp(T.int32(0), 1, 16)] = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.x86.avx512.vpdpbusd.512"),
            C_i32x16,
            A_u8x64,
            B_i8x64,
            dtype="int32x16",
        )


_standard = TensorIntrin.get(VNNI_DOT_16x4_INTRIN)
TensorIntrin.register(VNNI_DOT_16x4_INTRIN, _standard.desc, _dot_product_16x4, override=True)
