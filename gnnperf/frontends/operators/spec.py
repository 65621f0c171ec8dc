"""Operators written in one line: `bmm:B=16,M=512,N=512,K=64`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import get_args

from gnnperf.errors import InputError
from gnnperf.frontends.operators.linear_algebra import Convolution, FusedAttention, MatMul
from gnnperf.frontends.operators.operator import BINARY, Function, Operator
from gnnperf.frontends.operators.pointwise import Elementwise, Embedding
from gnnperf.frontends.operators.rows import LayerNorm, Pooling, Reduction, Softmax
from gnnperf.graph.vocabulary import check_precision

_Build = Callable[[Mapping[str, int]], Operator]

_UNFUSED = "attention"
"""The one name of several operators."""

_FORMS: Mapping[str, tuple[str, str, _Build]] = {
    "linear": ("M N K", "", lambda s: MatMul(s["M"], s["N"], s["K"], linear=True)),
    "bmm": ("B M N K", "", lambda s: MatMul(s["M"], s["N"], s["K"], batch=s["B"])),
    "softmax": ("B H", "", lambda s: Softmax(s["B"], s["H"])),
    "layernorm": ("B H", "", lambda s: LayerNorm(s["B"], s["H"])),
    "rmsnorm": ("B H", "", lambda s: LayerNorm(s["B"], s["H"])),
    "reduction": ("B H", "", lambda s: Reduction("add", s["B"], s["H"])),
    _UNFUSED: ("B M N K", "", lambda s: FusedAttention(s["B"], s["M"], s["N"], s["K"])),
    "fused_attention": ("B M N K", "", lambda s: FusedAttention(s["B"], s["M"], s["N"], s["K"])),
    "cat": ("B H", "", lambda s: Elementwise("copy", s["B"] * s["H"])),
    "embedding": ("B H V", "", lambda s: Embedding(s["B"], s["H"], s["V"])),
    "pool": (
        "B H W K", "S",
        lambda s: Pooling("max", s["B"], (s["H"], s["W"]), (s["K"],) * 2, (s.get("S", s["K"]),) * 2),
    ),
    "conv": (
        "B C O H W K", "S P G",
        lambda s: Convolution(
            s["B"], s["C"], s["O"], (s["H"], s["W"]), (s["K"],) * 2, (s.get("S", 1),) * 2,
            (s.get("P", 0),) * 2, groups=s.get("G", 1),
        ),
    ),
}  # fmt: skip
"""Name -> sizes that are needed, sizes that may be left out, constructor."""


def is_operator(text: str) -> bool:
    """Whether a text means an operator, not a file."""
    name = text.partition(":")[0]
    return name in _FORMS or not {name, name.removesuffix("u")}.isdisjoint(get_args(Function))


def no_operator(name: str) -> str:
    """What to write in place of a name that is no operator, in words."""
    known = list(dict.fromkeys((*_FORMS, *get_args(Function))))
    near = difflib.get_close_matches(name.lower().replace("_", ""), known, n=1)
    return f"operators are {', '.join(known)}{f'; did you mean {near[0]}?' if near else ''}"


def sizes_of(name: str) -> tuple[list[str], list[str]]:
    """Of an operator, the sizes that it needs, and those that may be left out."""
    needed, optional, _ = _FORMS.get(name, ("B H", "", None))
    return needed.split(), optional.split()


def parse_operators(text: str) -> list[Operator]:
    """What `parse_operator` reads, as it is launched: "attention:B=16,M=512,N=512,K=64" is a product, a
    scale, a softmax and a product. Raises InputError."""
    operator = parse_operator(text)
    if text.partition(":")[0] != _UNFUSED:
        return [operator]
    assert isinstance(operator, FusedAttention)
    return operator.unfused()


def parse_operator(text: str) -> Operator:
    """An operator from its name and sizes: "linear:M=512,N=1024,K=768", "softmax:B=4096,H=1024",
    "add:B=4096,H=1024" (two tensors), "addu:..." (a tensor and a number). dtype=fp16 among the sizes: see
    PRECISIONS; without, it is fp32. Raises InputError."""
    name, _, written = text.partition(":")
    sizes: dict[str, int] = {}
    dtype = "fp32"
    for part in filter(None, written.split(",")):
        key, _, value = part.partition("=")
        if key.strip() == "dtype":
            dtype = check_precision(value.strip(), text)
            continue
        if not value.isdecimal():
            raise InputError(f"{text}: expected sizes as B=16,M=512, got {part!r}")
        if key.strip() in sizes:
            raise InputError(f"{text}: expected each size once, got {key.strip()} twice")
        sizes[key.strip()] = int(value)
    needed, optional, build = _FORMS.get(name, ("B H", "", lambda s: _elementwise(name, s)))
    wrong = (set(needed.split()) - sizes.keys()) | (sizes.keys() - {*needed.split(), *optional.split()})
    if wrong:
        may = f" (and may have {optional})" if optional else ""
        raise InputError(f"{text}: {name} needs the sizes {needed}{may}; see {', '.join(sorted(wrong))}")
    return replace(build(sizes), dtype=dtype)


def _elementwise(name: str, sizes: Mapping[str, int]) -> Operator:
    function = next(f for f in get_args(Function) if f in (name, name.removesuffix("u")))
    return Elementwise(function, math.prod(sizes.values()), 2 if name in BINARY else 1)
