"""What builds and runs scheduled tasks: recipes as C++, traces through TVM."""

__all__: list[str] = []
