"""The smallest corpus that `gnnperf collect` measures: two kernels of one nest each."""

from __future__ import annotations

from pathlib import Path

KERNELS = """
import dace
import numpy as np

N = dace.symbol("N")


@dace.program
def doubled(x: dace.float64[N], y: dace.float64[N]):
    y[:] = 2 * x


@dace.program
def total(x: dace.float64[N, N], y: dace.float64[N]):
    y[:] = np.sum(x, axis=1)
"""


def write_config(folder: Path, recipes: int, foreign: int) -> Path:
    """The kernels, and `corpus.yaml`, which is returned. recipes, foreign: schedules of a nest's own search,
    and of others."""
    (folder / "kernels.py").write_text(KERNELS)
    config = folder / "corpus.yaml"
    config.write_text(f"""
name: tiny
recipes_per_nest: {recipes}
foreign_per_nest: {foreign}
entries:
  - {{kernel: kernels.py:doubled, family: elementwise, symbols: {{N: 300}}}}
  - {{kernel: kernels.py:total, family: reduction, symbols: {{N: 40}}}}
""")
    return config
