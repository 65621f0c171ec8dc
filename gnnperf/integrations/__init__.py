"""gnnperf inside other people's compilers."""

__all__: list[str] = []
