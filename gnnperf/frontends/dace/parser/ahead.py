"""What becomes of a program's text before DaCe 1.0's parser sees it."""

from __future__ import annotations

import ast
from functools import wraps
from typing import Any

from gnnperf.frontends.dace.parser.bits import without_bits
from gnnperf.frontends.dace.parser.generators import add_generators_up
from gnnperf.frontends.dace.parser.inner_functions import write_functions_out
from gnnperf.frontends.dace.parser.lists import bring_lists_in
from gnnperf.frontends.dace.parser.named_slices import write_slices_out
from gnnperf.frontends.dace.parser.rebinding import follow_names
from gnnperf.frontends.dace.parser.sizes import numbers_outside, write_sizes_out
from gnnperf.frontends.dace.parser.slices import Method
from gnnperf.frontends.dace.parser.spelling import spell_out
from gnnperf.frontends.dace.parser.turns import write_turns_out
from gnnperf.frontends.dace.parser.versions import number_versions
from gnnperf.frontends.dace.parser.wrapping import count_from_the_end
from gnnperf.frontends.dace.parser.written_views import replace_written_views


def rewritten(original: Method) -> Method:
    """Functions in a spelling that DaCe knows, in which every name stands for one array, places are counted
    from the beginning, bits of counters are quotients, and sizes are written out."""

    @wraps(original)
    def function_to_ast(function: Any) -> Any:
        tree, *where = original(function)
        outside = getattr(function, "__globals__", {})
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            write_functions_out(node)
            write_slices_out(node, outside)
            write_turns_out(node)
            add_generators_up(node)
            spell_out(node, outside)
            follow_names(node, outside)
            replace_written_views(node)
            number_versions(node)
            without_bits(node, numbers_outside(function))
            bring_lists_in(node, outside)
            count_from_the_end(node)
            write_sizes_out(node, function)
        return tree, *where

    return function_to_ast
