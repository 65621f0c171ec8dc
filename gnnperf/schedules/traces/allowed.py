"""What a trace may hold: the instructions of schedules for processors, and nothing that carries code.

A trace is a program that TVM runs on its IR, and some of what TVM's instructions can write into the IR is
compiled and run as it stands: an annotation `pragma_import_llvm` is LLVM IR of whoever wrote the trace. So a
trace from a store is read by a grammar: kinds of instructions with their attributes, keys and values of
annotations, tensor instructions by name. It has what MetaSchedule's rules for processors and
recipes in TVM's words make, with their post-processing; what only schedules for GPUs need is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gnnperf.errors import InputError, quoted

INTRINSICS = frozenset(
    (
        "dot_16x4_vnni",
        "dot_16x4_avx512",
        "dot_4x4_i8i8s32_neon",
        "dot_4x4_i8i8s32_sdot",
        "dot_4x4_u8u8u32_udot",
        "dot_4x4_u8u8i32_hdot",
    )
)
"""Tensor instructions of processors, as TVM registers them."""
SCOPES = frozenset(("global", "local"))
"""Of memory."""
INSTRUCTIONS, OPERANDS, LARGEST = 2_000, 64, 2**31
"""Most instructions of a trace and operands of one, and the end of its numbers."""
STEPS = 4_096
"""How far loops are unrolled at most."""
FACTORS = 8
"""Most factors of a loop that is tiled: all ways to share an extent out among them are gone through."""

Check = Callable[[Any], bool]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_BLOCK = re.compile(r"[\w.$-]{1,200}")
_ROLE = re.compile(r"[a-z]{1,20}( (before|after) [0-9]{1,4})?")
_LOOPS = re.compile(r"[SR]{0,64}")
_TILES = re.compile(r'"[SR]{1,16}"')


def _whole(least: int, most: int) -> Check:
    return lambda value: isinstance(value, int) and least <= value <= most


def _matches(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _among(words: frozenset[str]) -> Check:
    return lambda value: isinstance(value, str) and value in words


def _list(check: Check, least: int, most: int) -> Check:
    return lambda value: isinstance(value, list) and least <= len(value) <= most and all(map(check, value))


_variable, _block, _count = _matches(_VARIABLE), _matches(_BLOCK), _whole(0, LARGEST)
_flag = _whole(0, 1)
_variables = _list(_variable, 0, OPERANDS)
_instruction = _among(frozenset(f'"{name}"' for name in (*INTRINSICS, "")))  # as a quoted text; "": of none
_probability: Check = lambda value: isinstance(value, int | float) and 0 <= value <= 1  # noqa: E731


def _steps(value: Any) -> bool:
    """Sampled, or a number."""
    return _variable(value) or _whole(0, STEPS)(value)


ANNOTATIONS: Mapping[str, Check] = {
    "meta_schedule.parallel": _count,
    "meta_schedule.vectorize": _whole(0, STEPS),
    "meta_schedule.unroll_explicit": _steps,
    "meta_schedule.unroll_implicit": _steps,
    "meta_schedule.tiling_structure": _matches(_TILES),
    "meta_schedule.random_compute_producer": _flag,
    "meta_schedule.layout_rewrite_preproc": _flag,
    "meta_schedule.auto_tensorize": _instruction,
    "meta_schedule.auto_tensorize_init": _instruction,
    "pragma_auto_unroll_max_step": _steps,
    "pragma_unroll_explicit": _flag,
}
"""By key, what an annotation may say. No other pragma: there are some that are compiled as code."""
_REMOVED = frozenset((*ANNOTATIONS, "schedule_rule"))
"""Keys of annotations that may be taken away."""


class _Kind(NamedTuple):
    """attributes: checks, one for each. operand: of every operand. least, most: how many."""

    attributes: Sequence[Check]
    operand: Check
    least: int
    most: int


_ONE = _Kind((), _variable, 1, 1)
_LOOPS_OF = _Kind((), _variable, 1, OPERANDS)
_AT = _Kind((_flag, _whole(-2, OPERANDS)), _variable, 2, 2)
_COPY = _Kind((_whole(0, OPERANDS), _among(SCOPES)), lambda v: _variable(v) or _variables(v), 2, 2)

KINDS: Mapping[str, _Kind] = {
    "GetSBlock": _Kind((_block, _block), _variable, 0, 0),
    **dict.fromkeys(
        ("GetLoops", "GetChildBlocks", "GetOutputBlocks", "GetConsumers", "GetProducers", "ComputeInline",
         "ReverseComputeInline", "Parallel", "Vectorize", "Unroll", "SampleComputeLocation"),
        _ONE,
    ),
    "Split": _Kind((_flag, _flag), lambda v: v is None or _variable(v) or _count(v), 2, OPERANDS),
    "Fuse": _Kind((_flag,), _variable, 1, OPERANDS),
    "Reorder": _LOOPS_OF,
    "SamplePerfectTile": _Kind((_whole(1, FACTORS), _count), _variable, 1, 1),
    "SampleCategorical": _Kind(
        (_list(_whole(0, STEPS), 1, OPERANDS), _list(_probability, 1, OPERANDS)), _variable, 0, 0
    ),
    "ComputeAt": _AT,
    "ReverseComputeAt": _AT,
    "CacheRead": _COPY,
    "CacheWrite": _COPY,
    "SetScope": _Kind((_whole(0, OPERANDS), _among(SCOPES)), _variable, 1, 1),
    "DecomposeReduction": _Kind((), _variable, 2, 2),
    "RFactor": _Kind((_whole(0, OPERANDS),), _variable, 1, 1),
    "Blockize": _Kind((_flag,), _variable, 1, 1),
    "Tensorize": _Kind((_among(INTRINSICS), _flag), _variable, 1, 1),
    "Annotate": _Kind((_among(frozenset(ANNOTATIONS)),), lambda _: True, 2, 2),
    "Unannotate": _Kind((_among(_REMOVED),), _variable, 1, 1),
    "EnterPostproc": _Kind((), _variable, 0, 0),
}  # fmt: skip
"""Instructions by TVM's names."""


def check_trace(instructions: Sequence[Any], decisions: Mapping[int, Any]) -> None:
    """Raises InputError, with the instruction, where a trace holds anything else.

    instructions: [kind, operands, attributes, results] each. decisions: of those that sample, by position.
    """
    if len(instructions) > INSTRUCTIONS:
        raise InputError(f"a trace: expected at most {INSTRUCTIONS} instructions, got {len(instructions)}")
    for position, instruction in enumerate(instructions):
        if problem := _problem(instruction, position, decisions):
            raise InputError(f"a trace: instruction {position}: {problem}")
    for position in decisions:
        if not 0 <= position < len(instructions) or not instructions[position][0].startswith("Sample"):
            raise InputError(
                f"a trace: expected decisions of instructions that sample, got one of {position}"
            )


def check_shape(blocks: Mapping[Any, Any], loops: Any, cores: Any) -> None:
    """Raises InputError where the rest of a document is not what `TraceDocument` says."""
    named = (
        len(blocks) <= INSTRUCTIONS
        and all(map(_block, blocks))
        and all(map(_matches(_ROLE), blocks.values()))
    )
    if not named or "anchor" not in blocks.values():
        raise InputError("a trace: expected the roles of blocks, an anchor among them")
    if not _matches(_LOOPS)(loops) or not _whole(0, 2**16)(cores):
        raise InputError("a trace: expected loops as S and R, and a number of cores")


def _problem(instruction: Any, position: int, decisions: Mapping[int, Any]) -> str:
    """Why an instruction is not allowed; empty where it is."""
    try:
        name, operands, attributes, results = instruction
        kind = KINDS.get(name)
    except (TypeError, ValueError):
        return "expected its kind, operands, attributes and results"
    if kind is None:
        return f"{quoted(name)} is not among those that a schedule for processors needs"
    if not isinstance(attributes, list) or len(attributes) != len(kind.attributes):
        return f"{name}: expected {len(kind.attributes)} attributes, got {quoted(attributes)}"
    for check, value in zip(kind.attributes, attributes, strict=True):
        if not check(value):
            return f"{name}: {quoted(value)} is not allowed"
    if not isinstance(operands, list) or not kind.least <= len(operands) <= kind.most:
        return f"{name}: expected {kind.least} to {kind.most} operands, got {quoted(operands)}"
    if not all(map(kind.operand, operands)) or not _variables(results):
        return f"{name}: expected names of variables, got {quoted([operands, results])}"
    if name == "Annotate" and not (_variable(operands[0]) and ANNOTATIONS[attributes[0]](operands[1])):
        return f"{name}: {attributes[0]} may not be {quoted(operands[1])}"
    return _undecided(name, attributes, results, decisions.get(position))


def _undecided(name: str, attributes: Sequence[Any], results: Sequence[Any], decision: Any) -> str:
    """What is wrong with the decision of an instruction that samples."""
    if name == "SamplePerfectTile":
        count = attributes[0]
        if len(results) != count or not _list(_whole(1, LARGEST), count, count)(decision):
            return f"{name}: expected {count} factors, got {quoted(decision)}"
    elif name == "SampleCategorical":
        values, weights = attributes
        if len(results) != 1 or len(weights) != len(values) or not _whole(0, len(values) - 1)(decision):
            return f"{name}: expected one of {len(values)} values, got {quoted(decision)}"
    elif name == "SampleComputeLocation" and not _whole(-2, OPERANDS)(decision):
        return f"{name}: expected a place, got {quoted(decision)}"
    return ""
