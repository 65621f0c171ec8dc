"""Which part of an exported program does TVM translate wrongly? `python -m gnnperf.backends.tvm.first_wrong`.

In a process of its own: what is wrong may crash.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnnperf.measure.supervisor import run_module

PATIENCE_S = 120.0
LONGEST_SUM = 4096
"""Terms that a tolerance for any part of a program allows for."""


def wrong_part(path: Path) -> str | None:
    """The first operation of a program saved by `torch.export.save` that TVM computes wrongly, with the line
    that asks for it; None where none was found."""
    command, environment = run_module(__name__, str(path))
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    answer = done.stdout.strip().rpartition("\n")[2]
    return str(json.loads(answer)) if answer.startswith('"') else None


def first_wrong(program: Any, right: Callable[[Any], bool]) -> Any:
    """The first node of a `torch.export.ExportedProgram` up to which a program is not right; None where all
    of it is. By halving: what is computed from something wrong is taken to be wrong.

    right: says of an exported program that ends there.
    """
    module = program.module()
    nodes = [n for n in module.graph.nodes if n.op == "call_function" and _is_array(n)]
    low, high = 0, len(nodes)  # right before low, wrong at high
    while low < high:
        middle = (low + high) // 2
        if right(_until(module, nodes[middle].name, program)):
            low = middle + 1
        else:
            high = middle
    return nodes[low] if low < len(nodes) else None


def _is_array(node: Any) -> bool:
    import torch

    return isinstance(node.meta.get("val"), torch.Tensor)


def _until(module: Any, name: str, program: Any) -> Any:
    """The program that ends with a node, exported anew."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about torch's own use of torch
        part = copy.deepcopy(module)
        (node,) = [n for n in part.graph.nodes if n.name == name]
        (output,) = part.graph.find_nodes(op="output")
        output.args = ((node,),)
        part.graph._codegen.pytree_info = part.graph._codegen.pytree_info._replace(out_spec=None)
        part.graph.eliminate_dead_code()
        part.recompile()
        positional, named = program.example_inputs
        return torch.export.export(part, positional, named)


def is_right(program: Any) -> bool:
    """Whether TVM, with nothing scheduled, computes of a program's example inputs what PyTorch does."""
    from gnnperf.backends.tvm.problem import example_problem, named_results, tensors
    from gnnperf.frontends.tvm.relax_programs import plain_program
    from gnnperf.frontends.tvm.target import host_target
    from gnnperf.frontends.tvm.whole_program import MAIN

    problem = example_problem(program, LONGEST_SUM)
    machine, weights = plain_program(program, host_target()).compiled({}).machine()
    found = machine[MAIN](*tensors(problem.inputs.values()), *weights)
    return problem.verify(named_results(found)) is None


def described(node: Any) -> str:
    """An operation, and the last line of the user's that it comes from."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    where = f" ({lines[-1]})" if lines else ""
    return f"{node.target}{where}"


def main() -> None:
    """Print the part as JSON, or null."""
    import torch

    torch.set_num_threads(1)
    program = torch.export.load(sys.argv[1])
    node = first_wrong(program, is_right)
    print(json.dumps(None if node is None else described(node)))


if __name__ == "__main__":
    main()
