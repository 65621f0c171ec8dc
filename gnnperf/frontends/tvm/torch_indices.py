"""Indices of torch programs as PyTorch means them: negative ones count from the end.

The importer of relax hands them on as they are, and what relax makes of `take` and `index_tensor` reads
memory before the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnnperf.frontends.tvm.fast_import import import_tvm


def counted_from_start(module: Any) -> Any:
    """The IRModule with every negative index of `take` and `index_tensor` as one that is not."""
    tvm = import_tvm()
    from tvm import relax

    @relax.expr_functor.mutator
    class Indices(relax.PyExprMutator):  # type: ignore[misc]  # TVM has no types
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            name = getattr(call.op, "name", "")
            if name == "relax.take" and call.attrs.mode == "fast":
                array, indices = call.args
                axis = int(call.attrs.axis or 0)
                if isinstance(indices, tvm.ir.GenericConst):
                    return relax.op.take(array, _constant(relax, indices, _extent(array, axis)), axis, "fast")
                return relax.op.take(array, indices, axis, "wrap")  # what is not in the array stays in it
            if name == "relax.index_tensor":
                array, indices = call.args
                fields = indices.fields if isinstance(indices, relax.Tuple) else None
                if fields is None:
                    return call
                counted = [self.counted(index, _extent(array, axis)) for axis, index in enumerate(fields)]
                return relax.op.index_tensor(array, relax.Tuple(counted))
            return call

        def counted(self, index: Any, extent: int) -> Any:
            if isinstance(index, tvm.ir.GenericConst):
                return _constant(relax, index, extent)
            return from_start(self.builder_, index, extent)

    mutator = Indices(module)
    for variable, function in module.functions.items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(variable, mutator.visit_expr(function))
    found = mutator.builder_.get()
    return tvm.IRModule(found.functions, attrs=module.attrs)


def from_start(builder: Any, index: Any, extent: int) -> Any:
    """An index of relax, where negative ones count from the end, as one that does not. builder: of blocks."""
    relax, emit = import_tvm().relax, builder.emit
    index = emit(index)
    zero, size = (relax.const(number, str(index.ty.dtype)) for number in (0, extent))
    return emit(relax.op.where(relax.op.less(index, zero), relax.op.add(index, size), index))


def _extent(array: Any, axis: int) -> int:
    return int(array.ty.shape[axis])


def _constant(relax: Any, index: Any, extent: int) -> Any:
    values = index.value.numpy()
    return relax.const(np.where(values < 0, values + extent, values).astype(values.dtype), str(values.dtype))
