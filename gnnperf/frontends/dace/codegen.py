"""C++ from DaCe's own code generator, without cmake and without touching the user's folders."""

from __future__ import annotations

import copy
import functools
import re
import time
from collections.abc import Mapping
from typing import Any

import dace
import sympy
from dace.codegen.targets.cpu import CPUCodeGen
from dace.symbolic import DaceSympyPrinter
from dace.transformation.passes import pattern_matching

from gnnperf.errors import BuildError, NotApplicable, first_line
from gnnperf.frontends.dace.blocks import sum_in_blocks
from gnnperf.frontends.dace.openblas import OPENBLAS_INSTALLED, with_openblas
from gnnperf.frontends.dace.parser.repairs import other_names_of_cpp_words
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.frontends.dace.repaired import Repairs, repaired
from gnnperf.frontends.dace.state_graph import end_in_states
from gnnperf.measure import Argument, Compiler, Library, Source
from gnnperf.schedules.recipes.expressions import COMPLEX

BASELINES: Mapping[str, str] = {"auto": "dace-auto", "simplify": "dace-simplify"}
"""What a user may ask to beat, and how reports call it: DaCe's own optimisation, or the plain program."""

WITH_BLAS = f"{BASELINES['auto']}+openblas"
"""DaCe's optimisation where products are calls of OpenBLAS rather than loops."""


LONGEST_OPTIMISATION_S = 60.0
"""DaCe's `auto_optimize` takes longer of programs of some two hundred statements."""


def auto_optimised(sdfg: Any) -> Any:
    """A copy after DaCe's `auto_optimize`, which takes OpenBLAS for nodes of BLAS. Raises BuildError where
    that fails, or takes longer than `LONGEST_OPTIMISATION_S`."""
    from dace.transformation.auto.auto_optimize import auto_optimize

    program = copy.deepcopy(sdfg)
    _put_on_the_heap(program)
    end_s = time.monotonic() + LONGEST_OPTIMISATION_S
    in_time: Repairs = {(pattern_matching, "_try_to_match_transformation"): functools.partial(_until, end_s)}
    with quiet_dace(), repaired({**OPENBLAS_INSTALLED, **in_time}):
        try:
            auto_optimize(program, dace.DeviceType.CPU, validate=False)
        except Exception as error:  # DaCe's transformations raise anything
            raise BuildError(f"auto_optimize failed: {first_line(error)}") from error
    return program


def _put_on_the_heap(program: Any) -> None:
    """DaCe allocates arrays that are too large for the stack where they are, and never frees those that it
    meant to be there."""
    most_bytes = dace.Config.get("compiler", "max_stack_array_size")
    for nested in program.all_sdfgs_recursive():
        for array in nested.arrays.values():
            if array.storage != dace.StorageType.Register:
                continue
            is_known = not dace.symbolic.issymbolic(array.total_size, nested.constants)
            if is_known and array.total_size * array.dtype.bytes > most_bytes:
                array.storage = dace.StorageType.CPU_Heap


def _until(end_s: float, original: Any) -> Any:
    """What looks for places to transform, until a time on the clock."""

    @functools.wraps(original)
    def match(*where: Any, **more: Any) -> Any:
        if time.monotonic() > end_s:
            raise TimeoutError(f"it takes longer than {LONGEST_OPTIMISATION_S:g} s")
        return original(*where, **more)

    return match


_DACE = "#include <dace/dace.h>\n"
_MIXED_DIVISION = "".join(
    f"""template <class A, class B> inline auto {name}(A a, B b) {{
  using C = typename std::common_type<A, B>::type;
  return {name}<C>(static_cast<C>(a), static_cast<C>(b));
}}
"""
    for name in ("py_floor", "py_mod")
)
"""DaCe has them of two numbers of one type alone."""

_INIT = re.compile(r"__dace_init_(\w+)\((.*?)\)")


def plain_source(sdfg: Any, name: str) -> Source:
    """As `dace_source`, of a program that nothing has optimised: long sums run in blocks."""
    program = copy.deepcopy(sdfg)
    sum_in_blocks(program)
    return dace_source(program, name)


def dace_source(sdfg: Any, name: str) -> Source:
    """Generated code of an SDFG, ready for `measure.Compiler`.

    `name` becomes the symbol: `__program_<name>` takes the arrays by pointer and the scalars by
    value in DaCe's order. Raises BuildError where DaCe cannot generate code.
    """
    from dace.codegen import codegen

    with quiet_dace():
        program = copy.deepcopy(sdfg)
        program.name = name
        words = other_names_of_cpp_words(program)
        program.replace_dict(words)
        original = {name: word for word, name in words.items()}
        _put_on_the_heap(program)
        for nested in program.all_sdfgs_recursive():
            nested.openmp_sections = False
            end_in_states(nested)
        try:
            with repaired(_REPAIRED):
                objects = codegen.generate_code(program, validate=False)
        except Exception as error:  # DaCe raises anything here
            raise BuildError(f"DaCe cannot generate code: {first_line(error)}") from error
        arguments = tuple(
            Argument(original.get(k, k), "*" if isinstance(d, dace.data.Array) else d.dtype.ctype)
            for k, d in program.arglist().items()
        )
    linkable = [o for o in objects if o.language == "cpp" and o.linkable]
    if len(linkable) != 1:
        raise BuildError(f"DaCe generated {len(linkable)} C++ files instead of one")
    try:
        text = with_openblas(linkable[0].clean_code)
    except NotApplicable as error:
        raise BuildError(str(error)) from None
    mixed = _MIXED_DIVISION + COMPLEX if "complex" in text else _MIXED_DIVISION
    text = text.replace(_DACE, _DACE + mixed, 1)
    return Source(text, name, arguments, "dace", _init_arguments(text, name))


def _whole_powers(print_power: Any) -> Any:
    """Powers of integers in sizes, subscripts and bounds are integers; to C++ they are real numbers."""

    def print_whole_power(printer: Any, power: Any) -> str:
        text = str(print_power(printer, power))
        sign, _ = power.exp.as_coeff_Mul()
        whole = power.base.is_integer is not False and power.exp.is_integer is not False and sign > 0
        return f"static_cast<long long>({text})" if whole and "pow(" in text else text

    return print_whole_power


def _rounded_down(original: Any) -> Any:
    """Remainders and quotients of what may be negative, as `(i - k) % N`, are Python's; C rounds to zero."""

    def print_rounded_down(printer: Any, expr: Any) -> str:
        functions = {"Mod": "py_mod", "int_floor": "py_floor"}
        function, terms = functions.get(str(expr.func)), sympy.Add.make_args(sympy.expand(expr.args[0]))
        if function is None or not any(term.could_extract_minus_sign() for term in terms):
            return str(original(printer, expr))
        return f"{function}({printer._print(expr.args[0])}, {printer._print(expr.args[1])})"

    return print_rounded_down


def _once(original: Any) -> Any:
    """Arrays that several states use are declared ahead of them and allocated in the first; a view in a later
    one would allocate its array again, and what it held is lost."""

    @functools.wraps(original)
    def allocate(target: Any, sdfg: Any, cfg: Any, state: Any, number: int, node: Any, *more: Any) -> None:
        done = vars(target).setdefault("allocated_once", set())
        name = (sdfg.cfg_id, node.data)
        if name not in done:
            original(target, sdfg, cfg, state, number, node, *more)
        is_view = isinstance(sdfg.arrays.get(node.data), dace.data.View)
        if target._dispatcher.declared_arrays.has(node.data) and not is_view:
            done.add(name)

    return allocate


_REPAIRED: Repairs = {
    (CPUCodeGen, "allocate_array"): _once,
    (DaceSympyPrinter, "_print_Pow"): _whole_powers,
    (DaceSympyPrinter, "_print_Mod"): _rounded_down,
    (DaceSympyPrinter, "_print_Function"): _rounded_down,
}


def compiled(sdfg: Any, name: str, compiler: Compiler) -> Library:
    """A library of a program that nobody has tuned yet. Raises BuildError, which says that it is DaCe's."""
    try:
        return compiler.build(plain_source(sdfg, name))
    except BuildError as error:
        raise BuildError(f"what DaCe makes of the kernel does not compile: {error}") from None


def _init_arguments(text: str, name: str) -> tuple[Argument, ...]:
    for match in _INIT.finditer(text):
        if match.group(1) == name:
            parts = [p.strip().rsplit(" ", 1) for p in match.group(2).split(",") if p.strip()]
            return tuple(Argument(n, ctype) for ctype, n in parts)
    return ()
