"""The field registry: every number a program graph may carry, with its meaning, unit and encoding.

The encoding widths and `gnnperf.graph.schema_digest` are derived from these tables, so a field is added in
one place. Graphs store fields sparsely (a value equal to its default is left out), hence adding a field
changes no digest of a graph that does not use it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from gnnperf.errors import InputError
from gnnperf.graph.vocabulary import (
    ANNOTATIONS,
    DTYPES,
    INTRINSIC_AXES,
    LOOP_KINDS,
    NODE_KINDS,
    OPERATIONS,
    REDUCTIONS,
    RELATIONS,
    same,
)

Value: TypeAlias = int | float | bool | str | Mapping[str, int]
FieldType: TypeAlias = Literal["number", "flag", "category", "histogram"]
Level: TypeAlias = Literal["node", "edge", "graph"]


@dataclass(frozen=True, slots=True)
class Field:
    """One named quantity.

    kinds: node or edge kinds that carry it (all of the level when empty).
    type: "number" (encoded as sign(x)*log2(1+|x|)), "flag" (0 or 1), "category" (one of `choices`,
    one-hot over their classes), "histogram" (counts per choice, summed per class, then as number).
    choices: accepted value -> class it is encoded as; the class "" has no slot (the default "none").
    """

    name: str
    kinds: tuple[str, ...]
    unit: str
    meaning: str
    type: FieldType = "number"
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c for c in self.choices.values() if c))

    @property
    def width(self) -> int:
        return len(self.classes) if self.choices else 1

    @property
    def default(self) -> Value | None:
        """The value meant when a graph leaves the field out; None when it may not be left out."""
        defaults: dict[FieldType, Value] = {"number": 0, "flag": False, "histogram": {}}
        return defaults.get(self.type, "none" if "none" in self.choices else None)


# fmt: off
NODE_FIELDS: tuple[Field, ...] = (
    # loop
    Field("loop_kind", ("loop",), "", "how iterations depend on one another", "category", same(LOOP_KINDS)),
    Field("extent", ("loop",), "iterations", "mean trip count; 0 when it is not known"),
    Field("extent_unknown", ("loop",), "", "the trip count depends on data and was not measured", "flag"),
    Field("extent_varies", ("loop",), "", "bounds depend on an outer iterator (triangular, tiled)", "flag"),
    Field("extent_power_of_two", ("loop",), "iterations", "largest power of two that divides the extent"),
    Field("iterations", ("loop",), "iterations", "how often the body runs in total"),
    Field("step", ("loop",), "", "increment of the iterator"),
    Field("depth", ("loop",), "loops", "number of enclosing loops"),
    Field("ordered", ("loop",), "", "iterations run in order (also said of data-dependent loops)", "flag"),
    Field("innermost", ("loop",), "", "contains no loop", "flag"),
    Field("reduces", ("loop",), "", "some reduction below it accumulates over this loop", "flag"),
    Field("annotation", ("loop",), "", "what a schedule does with the loop", "category", same(ANNOTATIONS)),
    Field("binding", ("loop",), "", "GPU grid axis of a bound loop", "category", same("none x y z")),
    Field("omp_schedule", ("loop",), "", "OpenMP schedule of a parallel loop", "category",
          same("none static dynamic guided balanced")),
    Field("chunk", ("loop",), "iterations", "OpenMP chunk of a parallel loop; 0: the runtime's choice"),
    Field("collapse", ("loop",), "loops", "nested loops merged into a parallel one, itself included"),
    Field("tile_level", ("loop",), "", "0 over points, counting outwards for tile loops"),
    # buffer
    Field("element_bytes", ("buffer", "access"), "bytes", "size of one element"),
    Field("rank", ("buffer",), "dimensions", "number of array dimensions; 0 for a scalar"),
    Field("size_bytes", ("buffer",), "bytes", "elements times element size"),
    Field("scope", ("buffer",), "", "where the buffer lives", "category", same("global shared local")),
    Field("transient", ("buffer",), "", "nothing outside the nest reads it", "flag"),
    Field("contiguous", ("buffer",), "", "row-major without gaps", "flag"),
    # access
    Field("access_kind", ("access",), "", "what is done to the element", "category",
          same("read write reduction")),
    Field("footprint_bytes", ("access",), "bytes", "distinct bytes touched"),
    Field("touches", ("access",), "accesses", "how often the access happens in total"),
    Field("offset_elements", ("access",), "elements",
          "first element touched, relative to the lowest one among the accesses of the same buffer"),
    Field("nonaffine", ("access",), "", "some subscript is not affine in the iterators", "flag"),
    Field("indirect", ("access",), "", "some subscript is loaded from memory (gather, scatter)", "flag"),
    Field("initialised", ("access",), "", "the reduction sets the element's initial value itself", "flag"),
    # compute (and, for address arithmetic that is not affine, access)
    Field("operations", ("compute", "access"), "operations", "operations per instance", "histogram",
          OPERATIONS),
    Field("reduction", ("compute",), "", "how the result is combined with its target", "category",
          same(REDUCTIONS)),
    Field("guarded", ("compute",), "", "runs only where a condition holds", "flag"),
    Field("flops", ("compute", "intrinsic"), "FLOP", "arithmetic operations of one instance"),
    Field("instances", ("compute", "intrinsic"), "instances", "how often it runs in total"),
    Field("dtype", ("buffer", "compute", "intrinsic"), "", "element or result type", "category", DTYPES),
    # intrinsic
    Field("accumulator_dtype", ("intrinsic",), "", "type of the accumulator", "category",
          {"none": "", **{name: f"accumulates_{c}" for name, c in DTYPES.items()}}),
    Field("m_extent", ("intrinsic",), "elements", "rows of the output tile of one instruction"),
    Field("n_extent", ("intrinsic",), "elements", "columns of the output tile"),
    Field("k_extent", ("intrinsic",), "elements", "length of its reduction"),
    Field("flops_per_cycle", ("intrinsic",), "FLOP/cycle", "throughput on one core or multiprocessor"),
)

EDGE_FIELDS: tuple[Field, ...] = (
    Field("nesting_depth", ("contains",), "loops", "number of loops around the contained node"),
    Field("subscript", ("indexes",), "", "how the iterator enters the subscript", "category",
          same("affine nonaffine indirect invariant")),
    Field("stride_elements", ("indexes",), "elements", "distance in memory between neighbouring iterations"),
    Field("stride_bytes", ("indexes",), "bytes", "the same in bytes"),
    Field("dimension", ("indexes", "reads"), "", "array dimension, 0 the outermost"),
    Field("dimension_from_last", ("indexes", "reads"), "", "the same, 0 the innermost"),
    Field("dimension_extent", ("indexes",), "elements", "shape of the array in that dimension"),
    Field("role", ("reads",), "", "what the element is used for (memory: buffer to access)", "category",
          same("memory value guard initial subscript bound")),
    Field("through", ("flows",), "", "what carries the value", "category", same("register transient memory")),
    Field("carried", ("flows",), "", "from an earlier iteration of a sequential loop", "flag"),
    Field("carrier_bytes", ("flows",), "bytes", "size of what carries the value"),
    Field("axis", ("assigns",), "", "axis of the instruction", "category", same(INTRINSIC_AXES)),
    Field("tile_extent", ("assigns",), "iterations", "iterations of the loop that one instruction covers"),
)

GRAPH_FIELDS: tuple[Field, ...] = (
    Field("total_flops", (), "FLOP", "arithmetic operations of the nest"),
    Field("distinct_bytes", (), "bytes", "distinct bytes of memory touched (compulsory traffic)"),
    Field("touched_bytes", (), "bytes", "bytes moved if every access went to memory"),
    Field("arithmetic_intensity", (), "FLOP/byte", "total_flops / distinct_bytes"),
    Field("parallel_iterations", (), "iterations", "most independent iterations around one statement"),
    Field("reduction_iterations", (), "iterations", "most reduction iterations around one statement"),
    Field("loop_depth", (), "loops", "deepest nesting"),
    Field("statements", (), "statements", "number of compute nodes"),
)
# fmt: on

FIELDS: Mapping[Level, tuple[Field, ...]] = MappingProxyType(
    {"node": NODE_FIELDS, "edge": EDGE_FIELDS, "graph": GRAPH_FIELDS}
)
NODE_FEATURES = sum(f.width for f in NODE_FIELDS)
EDGE_FEATURES = sum(f.width for f in EDGE_FIELDS)
GRAPH_FEATURES = sum(f.width for f in GRAPH_FIELDS)

_KINDS: Mapping[Level, tuple[str, ...]] = {"node": NODE_KINDS, "edge": RELATIONS, "graph": ("",)}
_BY_KIND = {
    (level, kind): {f.name: f for f in FIELDS[level] if kind in f.kinds or not f.kinds}
    for level, kinds in _KINDS.items()
    for kind in kinds
}
_AS_IS: Mapping[FieldType, type] = {"number": int, "flag": bool}
"""Values of these types are canonical."""
_SORTED: Mapping[tuple[Level, str], list[tuple[str, Field, type | None, Value | None]]] = {
    key: [(name, known[name], _AS_IS.get(known[name].type), known[name].default) for name in sorted(known)]
    for key, known in _BY_KIND.items()
}
_REQUIRED = {key: [n for n, f in known.items() if f.default is None] for key, known in _BY_KIND.items()}


def fields_of(level: Level, kind: str = "") -> Mapping[str, Field]:
    """The fields, by name, that nodes or edges of one kind carry (`kind` is "" for the graph)."""
    try:
        return _BY_KIND[level, kind]
    except KeyError:
        known = ", ".join(_KINDS[level])
        raise InputError(f"expected a graph {level} kind out of {known}, got {kind!r}") from None


def checked(level: Level, kind: str, features: Mapping[str, Value]) -> dict[str, Value]:
    """`features` in canonical form: known names only, sorted, checked, defaults left out.

    Numbers are brought to 12 significant digits, whole ones to int, so that equal quantities
    computed in another order stay equal. Raises InputError for anything the registry does not know.
    """
    known = fields_of(level, kind)
    if not features.keys() <= known.keys():
        name = min(features.keys() - known.keys())
        raise InputError(f"expected a field of {kind or 'a graph'} ({', '.join(known)}), got {name!r}")
    result: dict[str, Value] = {}
    for name, spec, as_is, default in _SORTED[level, kind]:
        if name in features:
            value = features[name]
            if type(value) is not as_is:
                value = _canonical(spec, value)
            if value != default:
                result[name] = value
    for name in _REQUIRED[level, kind]:
        if name not in result:
            raise InputError(f"expected {kind} to have the field {name!r}, got {', '.join(result) or 'none'}")
    return result


_WHOLE = 1e12
"""Whole numbers below this have at most 12 digits."""


def _canonical(spec: Field, value: Value) -> Value:
    if spec.type == "number" and isinstance(value, int | float) and math.isfinite(value):
        if not isinstance(value, float):
            return int(value)
        if not value.is_integer() or abs(value) >= _WHOLE:
            value = float(f"{value:.12g}")
        return int(value) if value.is_integer() else value
    if spec.type == "category" and isinstance(value, str) and value in spec.choices:
        return value
    if spec.type == "histogram" and isinstance(value, Mapping) and value.keys() <= spec.choices.keys():
        counts: list[object] = list(value.values())  # of a file that somebody wrote, anything
        if all(isinstance(count, int | float) and math.isfinite(count) for count in counts):
            return {k: int(value[k]) for k in sorted(value) if value[k]}
    choices = f" out of {', '.join(spec.choices)}" if spec.choices else ""
    raise InputError(f"expected a {spec.type}{choices} for the field {spec.name!r}, got {value!r}")
