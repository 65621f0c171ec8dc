"""`retrieve --output DIR`: the tuned program in forms that outlive gnnperf.

* kernel.sdfgz: the tuned SDFG, or the baseline's where that was kept (kernel.cpp, where there is no SDFG)
* libkernel.so: the same, compiled for this machine
* run.py: loads the library; `call(**arrays)` for other programs, `python run.py` to try it
* report.json: the document of `--json`
* globals.npz: where the program uses global arrays, these as they were
* libscipy_openblas.so: where a nest became calls of BLAS, the library that they open
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT, cannot_write
from gnnperf.frontends.nest_program import Measurable, TunableProgram, Tuned
from gnnperf.measure import Compiler, Library, complex_scalars
from gnnperf.measure.library import CTYPES
from gnnperf.measure.python_function import RETURNED, in_order
from gnnperf.schedules.recipes.library_calls import libraries

GLOBAL = "__g_"
"""How DaCe's names of global arrays begin."""
GLOBALS = "globals.npz"


def write_output(
    folder: Path, program: TunableProgram, tuned: Tuned, report: str, compiler: Compiler
) -> None:
    """Write all files, each under a temporary name first: a full disk leaves no half file behind.

    tuned: the program as it is to run. report: text of report.json. Raises GnnperfError.
    """
    code = program.whole
    source = tuned.source(f"{code.name}_out")
    library, opened = compiler.build(source), libraries(source.text)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".gnnperf-") as scratch:
            new = Path(scratch)
            saved = tuned.save(new)
            shutil.copyfile(library.path, new / LIBRARY)
            if arrays := _global_arrays(code, library):
                np.savez(new / GLOBALS, **arrays)
                saved = (*saved, GLOBALS)
            for path in opened:
                shutil.copyfile(path, new / path.name)
            (new / SCRIPT).write_text(_script(code, library, program.same))
            (new / REPORT).write_text(report + "\n")
            for name in (*saved, LIBRARY, SCRIPT, REPORT, *(path.name for path in opened)):
                (new / name).replace(folder / name)
    except OSError as error:
        raise cannot_write(folder, error) from None


_TEMPLATE = '''"""{name}: compiled by gnnperf. Needs only NumPy.

call(**arguments) runs the kernel in place, on arrays that do not overlap, and returns what it returns.
`python {script}` runs it once on made-up inputs.
"""

import atexit
import ctypes
import pathlib
import time

import numpy as np

ARGUMENTS = {arguments}
"""(name, C type or "*" for an array, dtype, shape, strides in elements), in the order of the C function."""
WRITTEN = {written}
"""Arrays that a call writes."""
RETURNED = {returned}
"""Arrays that the program returns: made by a call that is not given them."""
INIT = {init}
SAME = {same}
"""Arrays that are another one; they may be left out."""
SYMBOL = "{symbol}"

_folder = pathlib.Path(__file__).resolve().parent
library = ctypes.CDLL(str(_folder / "{library}"))
GLOBALS = {globals}
"""Global arrays of the program, of which a call may be given others."""
{complex}{functions}


def _scalar(ctype):
    return globals().get(ctype) or getattr(ctypes, ctype)


_CHECKED = [
    (name, None if ctype == "*" else _scalar(ctype), np.dtype(dtype), tuple(shape),
     tuple(s * np.dtype(dtype).itemsize for s in strides), name in WRITTEN)
    for name, ctype, dtype, shape, strides in ARGUMENTS
]
"""The same as what a call compares: strides in bytes."""


def _slow_pointer(array):
    return ctypes.c_void_p(np.asarray(array).__array_interface__["data"][0])


# The first member of NumPy's PyArrayObject points to the data: read, it costs a tenth of asking.
_at, _DATA = ctypes.c_void_p.from_address, object.__basicsize__
_FAST = _at(id(_array := np.ones(1)) + _DATA).value == _array.ctypes.data
_ndarray = np.ndarray


def _copied(array, strides):
    # A pointer to a copy in another memory order. It keeps the copy.
    size = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides)) // array.itemsize
    copy = np.lib.stride_tricks.as_strided(np.empty(size, array.dtype), array.shape, strides)
    copy[...] = array
    pointer = _slow_pointer(copy)
    pointer.array = copy
    return pointer


def converted(arguments):
    """As the C function takes them, checked. Valid as long as the arrays are, and this list."""
    values = []  # all that follows is written for speed: it is what a call costs
    for name, scalar, dtype, shape, strides, written in _CHECKED:
        try:
            value = arguments[name]
        except KeyError:
            names = ", ".join(name for name, *_ in ARGUMENTS if name not in (*RETURNED, *GLOBALS))
            raise TypeError(f"{{name}}: expected a value, got none; the arguments are {{names}}") from None
        if scalar is not None:
            try:
                values.append(scalar(value))
            except TypeError:
                raise TypeError(f"{{name}}: expected a number for {{dtype}}, got {{value!r}}") from None
            continue
        if type(value) is not _ndarray and not isinstance(value, _ndarray):
            raise TypeError(f"{{name}}: expected an array of NumPy, got {{type(value).__name__}}")
        same = value.dtype is dtype or value.dtype == dtype
        if not same or value.shape != shape or (value.strides != strides and value.size):
            fits = same and value.shape == shape
            if fits and not written:
                values.append(_copied(value, strides))
                continue
            got = f"{{value.dtype}}{{list(value.shape)}} with strides {{list(value.strides)}} bytes"
            wanted = f"{{dtype}}{{list(shape)}} with strides {{list(strides)}} bytes"
            hint = "; it is written: make an array in this order (np.ascontiguousarray), and read that"
            raise TypeError(f"{{name}}: expected {{wanted}}, got {{got}}{{hint if fits else ''}}")
        if written and not value.flags.writeable:
            raise TypeError(f"{{name}}: expected an array that can be written, got one that is read-only")
        values.append(_at(id(value) + _DATA) if _FAST else _slow_pointer(value))
    for name, first in SAME.items():
        given = arguments.get(name, arguments[first])
        if _slow_pointer(given).value != _slow_pointer(arguments[first]).value:
            raise TypeError(f"{{name}}: expected what {{first}} is, as when this was tuned")
    return {converted}


def call(**arguments):
    """Run once, writing arrays in place; their dtypes, shapes and memory order are those of ARGUMENTS. Of an
    array that is only read, in another memory order, a copy is made. It returns what the program returns."""
    if not (GLOBALS or RETURNED):
        program(*converted(arguments))
        return None
    made = {{name: np.empty(shape, dtype) for name, _, dtype, shape, *_ in _CHECKED if name in RETURNED}}
    arguments = {{**GLOBALS, **made, **arguments}}
    program(*converted(arguments))
    results = tuple(arguments[name] for name in RETURNED)
    return results if len(results) > 1 else results[0] if results else None


def example():
    """Arrays and scalars of the right kinds: the kernel runs, the values mean nothing."""
    rng = np.random.default_rng(0)
    made = {scalars}
    made.update(GLOBALS)
    for name, ctype, dtype, shape, strides in ARGUMENTS:
        if ctype != "*" or name in GLOBALS:
            continue
        size = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0
        flat = rng.random(size).astype(dtype) if np.dtype(dtype).kind == "f" else np.zeros(size, dtype)
        item = np.dtype(dtype).itemsize
        made[name] = np.lib.stride_tricks.as_strided(flat, shape, [s * item for s in strides])
    return made


if __name__ == "__main__":
    arguments = example()
    call(**arguments)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call(**arguments)
        times.append(time.perf_counter() - start)
    print(f"{name}: {{min(times) * 1e3:.3f}} ms")
'''


_FUNCTIONS = {
    "plain": """program = getattr(library, SYMBOL)
program.restype = None""",
    "dace": """_initialise = getattr(library, f"__dace_init_{SYMBOL}")
_initialise.restype = ctypes.c_void_p
program = getattr(library, f"__program_{SYMBOL}")
program.restype = None
_finalise = getattr(library, f"__dace_exit_{SYMBOL}")
_handles = {}


def _handle(arguments):
    # The program's state: made at the first call, and gone when Python ends.
    key = tuple(arguments[name] for name, _ in INIT)
    if key not in _handles:
        made = _initialise(*(_scalar(ctype)(value) for (_, ctype), value in zip(INIT, key)))
        _handles[key] = ctypes.c_void_p(made)
        atexit.register(_finalise, _handles[key])
    return _handles[key]""",
}
_CONVERTED = {"plain": "values", "dace": "[_handle(arguments), *values]"}
"""By the library's protocol."""


def _global_arrays(code: Measurable, library: Library) -> dict[str, Any]:
    """Global arrays that a program uses, under the names that DaCe gives these."""
    names = [a.name for a in library.arguments if a.ctype == "*" and a.name.startswith(GLOBAL)]
    return {name: code.data[name] for name in names}


def _script(code: Measurable, library: Library, same: Mapping[str, str]) -> str:
    arguments, scalars = [], {}
    returned = [a.name for a in library.arguments if a.name.startswith(RETURNED)]
    loaded = f'dict(np.load(_folder / "{GLOBALS}"))' if _global_arrays(code, library) else "{}"
    for argument in library.arguments:
        value = np.asarray(code.data[argument.name])
        if argument.ctype == "*":
            strides = tuple(s // value.itemsize for s in value.strides)
            arguments.append((argument.name, "*", str(value.dtype), value.shape, strides))
        else:
            arguments.append((argument.name, CTYPES[argument.ctype], str(value.dtype), (), ()))
            scalars[argument.name] = value.item()
    init = []
    for argument in library.init:
        init.append((argument.name, CTYPES[argument.ctype]))
        scalars[argument.name] = np.asarray(code.data[argument.name]).item()
    made = ", ".join(f"{name!r}: {_literal(value)}" for name, value in scalars.items())
    kinds = {CTYPES.get(a.ctype, "") for a in (*library.arguments, *library.init)}
    classes = [getattr(complex_scalars, kind) for kind in sorted(kinds) if hasattr(complex_scalars, kind)]
    return _TEMPLATE.format(
        complex="".join(f"\n\n{inspect.getsource(of_kind)}\n\n" for of_kind in classes),
        name=code.name, script=SCRIPT, symbol=library.symbol, library=LIBRARY, arguments=_lines(arguments),
        init=repr(init), scalars=f"{{{made}}}", functions=_FUNCTIONS[library.protocol],
        converted=_CONVERTED[library.protocol], same=repr(dict(same)), written=repr(list(code.outputs)),
        returned=repr(sorted(returned, key=in_order)), globals=loaded,
    )  # fmt: skip


def _literal(value: Any) -> str:
    """A number as Python reads it: infinities have no literals."""
    if isinstance(value, complex):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    return repr(value) if np.isfinite(value) else f"float('{value}')"


def _lines(items: list[Any]) -> str:
    return "[\n" + "".join(f"    {item!r},\n" for item in items) + "]"
