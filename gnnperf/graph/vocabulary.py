"""The closed vocabularies of the program graph: kinds, dtypes, operations, annotations.

Graphs (and so digests) keep the exact word; the encoding maps words to classes that cost the same,
so that a network trained on `add` and `float32` also has seen `sub` and understands `bfloat16`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gnnperf.errors import InputError

NODE_KINDS = ("loop", "buffer", "access", "compute", "intrinsic")

_CONSUMERS = ("compute", "intrinsic", "access", "loop")

ENDPOINTS: Mapping[str, frozenset[tuple[str, str]]] = {
    "contains": frozenset({("loop", "loop"), ("loop", "compute"), ("loop", "intrinsic")}),
    "indexes": frozenset({("loop", "access")}),
    "reads": frozenset({("buffer", "access"), *(("access", consumer) for consumer in _CONSUMERS)}),
    "writes": frozenset({("compute", "access"), ("intrinsic", "access"), ("access", "buffer")}),
    "flows": frozenset((source, consumer) for source in ("compute", "intrinsic") for consumer in _CONSUMERS),
    "assigns": frozenset({("loop", "intrinsic")}),
}
"""Which kinds each relation may join, in the direction of containment or of data.

`reads` runs buffer -> access -> consumer, where the consumer is a computation, a loop whose bound is
loaded, or an access whose subscript is loaded; `writes` runs computation -> access -> buffer.
"""

RELATIONS = tuple(ENDPOINTS)
EDGE_KINDS = (*RELATIONS, *(f"{r}_reversed" for r in RELATIONS))
"""Edge kinds of an encoded graph: every relation is also walked backwards."""

LOOP_KINDS = ("spatial", "reduction", "sequential", "data-dependent")
ANNOTATIONS = ("none", "parallel", "vectorized", "simd", "unrolled", "block", "thread", "virtual_thread")
REDUCTIONS = ("none", "add", "mul", "min", "max")
INTRINSIC_AXES = ("m", "n", "k", "batch")

DTYPES: Mapping[str, str] = {
    **{f"float{n}": "floating" for n in (16, 32, 64)},
    **dict.fromkeys(("bfloat16", "float8_e4m3", "float8_e5m2"), "floating"),
    **{f"{sign}int{n}": "integer" for sign in ("", "u") for n in (8, 16, 32, 64)},
    "bool": "boolean",
    "complex64": "complex",
    "complex128": "complex",
}

ELEMENT_BYTES: Mapping[str, int] = {
    "bool": 1,
    "bfloat16": 2,
    "float8_e4m3": 1,
    "float8_e5m2": 1,
    **{f"{kind}{8 * n}": n for n in (1, 2, 4, 8) for kind in ("int", "uint")},
    **{f"float{8 * n}": n for n in (2, 4, 8)},
    **{f"complex{8 * n}": n for n in (8, 16)},
}


PRECISIONS: Mapping[str, str] = {
    "fp64": "float64", "fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16",
    "fp8": "float8_e4m3", "int8": "int8", "uint8": "uint8", "int16": "int16", "int32": "int32",
    "int64": "int64", "bool": "bool",
}  # fmt: skip
"""What operators compute in -> how that is stored. tf32 is fp32 of which products use fewer digits."""


def check_precision(name: str, where: str) -> str:
    """`name`, if it is one of PRECISIONS. Raises InputError, which begins with `where`."""
    if name not in PRECISIONS:
        raise InputError(f"{where}: expected a dtype out of {', '.join(PRECISIONS)}, got {name!r}")
    return name


def element_bytes(dtype: str) -> int:
    """Size of one element; InputError for a dtype that graphs do not know."""
    try:
        return ELEMENT_BYTES[dtype]
    except KeyError:
        raise InputError(f"expected a dtype out of {', '.join(ELEMENT_BYTES)}, got {dtype!r}") from None


OPERATIONS: Mapping[str, str] = {
    name: group
    for group, names in {
        "additive": "add sub neg abs sign conj real imag",
        "multiply": "mul",
        "divide": "div floordiv mod",
        "compare": "min max lt le gt ge eq ne select",
        "logic": "and or not bitand bitor bitxor shl shr",
        "round": "floor ceil cast",
        "root": "sqrt",
        "exponential": "exp log pow tanh sinh cosh",
        "trigonometric": "sin cos tan asin acos atan atan2",
    }.items()
    for name in names.split()
}
"""Operation -> cost class."""

FLOPS: Mapping[str, int] = {
    name: int(name not in ("select", "cast") and group != "logic") for name, group in OPERATIONS.items()
}
"""Arithmetic operations counted for one operation: 1 each, also for exp and its like (the
convention of roofline counts), 0 for moving, choosing and converting values."""


def same(choices: str | Iterable[str]) -> dict[str, str]:
    """Every choice is its own class; "none" is encoded as all zeros."""
    words = choices.split() if isinstance(choices, str) else choices
    return {word: "" if word == "none" else word for word in words}
