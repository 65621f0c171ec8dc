"""Clean-up of translated code: what DaCe expressed through scalar temporaries, symbols and branches
becomes plain expressions, so that loops show the accesses they really make.

Every step preserves what the code computes. Steps are functions of a block (the body of one loop, or
the whole), what happens outside of that block, and the buffers.
"""

from gnnperf.frontends.dace.tidy.rounds import tidy

__all__ = ["tidy"]
