"""`gnnperf.load()`: the only place that puts models, stores, this machine and backends together."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from gnnperf.backends.base import Executor
from gnnperf.backends.folder import MODEL, SCRIPT, check_output, folder_of, load_script
from gnnperf.devices import DeviceSpec, describe_host
from gnnperf.documents import to_json
from gnnperf.errors import GnnperfError, InputError, Interrupted, MeasureError, StoreError, quoted
from gnnperf.frontends.base import Given, Program, load_program
from gnnperf.graph import ProgramGraph
from gnnperf.retrieval import RetrievalReport
from gnnperf.retrieval.confidence import Confidence
from gnnperf.retrieval.memory import Memory
from gnnperf.retrieval.pipeline import Options, Pipeline
from gnnperf.retrieval.proposers import Proposer, RecipeProposer
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.stores import open_own
from gnnperf.shipped import shipped
from gnnperf.store import Store

if TYPE_CHECKING:
    from gnnperf.frontends.nest_program import TunableProgram
    from gnnperf.measure.competitors import Competitor
    from gnnperf.nn import Bundle
    from gnnperf.nn.demand import DemandBundle
    from gnnperf.nn.runtime import RuntimeHead
    from gnnperf.nn.traces import TensorBundle
    from gnnperf.retrieval.check import TableCheck
    from gnnperf.retrieval.gpu import ConfigurationForecast, OperatorForecast
    from gnnperf.retrieval.tunable import ConfigurationProposal

Notify = Callable[[str], None]
Advance = Callable[[int, str], None]


@dataclass(frozen=True)
class TaskEmbedding:
    """A task as retrieval sees it. kernel, name: of the program, and of the task in it. digest: of its
    program graph, equal for equal programs. vector: f32[d] of norm 1; the distance of two is 1 - their
    product."""

    kernel: str
    name: str
    digest: str
    vector: np.ndarray


@dataclass(frozen=True)
class Retrieval(RetrievalReport):
    """What `retrieve` or `tune` found: all of the report, and the tuned kernel itself.

    Example:
        found = gnnperf.retrieve(gemm, N=512)
        found.speedup, found.schedules
        found.call(A=a, B=b, C=c)  # in place
        found.save("tuned")
    """

    graphs: Mapping[str, ProgramGraph] = field(default_factory=dict, repr=False)
    """Of the tasks, by digest."""
    writer: Callable[[Path, str], None] | None = field(default=None, repr=False, compare=False)

    @property
    def schedules(self) -> Mapping[str, Mapping[str, Any]]:
        """The schedule of every task that was given one, by the task's name."""
        return {nest.name: nest.accepted for nest in self.nests if nest.accepted is not None}

    def to_json(self) -> str:
        """The document of `gnnperf retrieve --json`."""
        return to_json(self.to_dict())

    def save(self, folder: str | Path) -> Path:
        """Write the tuned kernel, or the baseline where that was kept, as `gnnperf retrieve --output` does: a
        compiled library, a script that loads it, schedules or SDFG, and the report. Raises InputError where
        the folder cannot be written, GnnperfError where nothing was measured or the whole could not be."""
        if self.failed:
            raise MeasureError(self.note)
        if self.writer is None or self.baseline is None:
            raise GnnperfError(f"there is nothing to save: {self.note}")
        path = Path(folder)
        check_output(path)
        self.writer(path, self.to_json())
        return path

    @cached_property
    def _script(self) -> Any:
        folder = self.save(folder_of(self, "gnnperf-tuned-"))
        return load_script(folder, MODEL if (folder / MODEL).exists() else SCRIPT)

    def call(self, *arrays: Any, **arguments: Any) -> Any:
        """Run the tuned kernel once, in place: a DaCe kernel on arrays and scalars by name, a TVM function on
        its arrays in the order of its parameters. What a DaCe program returns is made, and returned; its
        global arrays need not be given. Of an array that a DaCe kernel only reads, in another memory
        order than the kernel's, a copy is made. A torch module or exported program takes the tensors that it
        is called with, or arrays like them, and returns its result, or a tuple of them, as torch tensors.
        Raises TypeError where an array is given otherwise, or is not of the kernel's dtype and shape, or is
        written and read-only or in another memory order, GnnperfError of an IRModule of several functions.
        """
        script = self._script
        if hasattr(script, "model"):
            from gnnperf.backends.tvm.problem import run_model

            return run_model(script.model, arrays, arguments)
        takes = script.ARGUMENTS
        if not isinstance(takes, dict):  # of one program
            if arrays:
                names = ", ".join(
                    name for name, *_ in takes if name not in (*script.RETURNED, *script.GLOBALS)
                )
                raise TypeError(f"expected all arguments by name ({names}), got {len(arrays)} without one")
            return script.call(**arguments)
        if len(takes) > 1:
            raise GnnperfError(
                f"expected a kernel of one function, got {len(takes)}; save it, and use {SCRIPT}"
            )
        if arguments:
            raise TypeError(f"expected arrays in their order, got {', '.join(arguments)} by name")
        return script.call(*takes, *arrays)

    def _repr_html_(self) -> str:
        from gnnperf.report import retrieval_page

        return retrieval_page(self, self.graphs, describe_host())


class Session:
    """Models, stores and this machine, put together once for any number of kernels.

    A kernel is a text as on the command line (`path.py:name`, `.sdfg`, `.json`, `.pt2`) or the object itself:
    a `@dace.program`, an SDFG, a PrimFunc, an IRModule, a list of TE tensors, a `torch.nn.Module` with
    example inputs, an ExportedProgram. Everything is loaded when it is first needed.

    Example:
        session = gnnperf.load()
        found = session.retrieve("kernel.py:gemm", N=512)
        print(f"{found.speedup:.1f}x")
    """

    def __init__(
        self,
        checkpoint: str | Path | None = None,
        store: str | Path | Literal[False] | None = None,
        notify: Notify = lambda _: None,
    ) -> None:
        """Put together, and load nothing yet. Raises InputError where `checkpoint` is no folder.

        Args:
            checkpoint: a bundle with a store of its own; None: the released ones.
            store: your schedule store, a folder or URI: searched beside the released one, and what is
                measured is added to it; None: $GNNPERF_STORE, else in the user's data folder; False: none.
            notify: is told what is being done.
        """
        if checkpoint is not None and not Path(checkpoint).is_dir():
            raise InputError(f"checkpoint: expected the folder of a bundle, got {str(checkpoint)!r}")
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.store, self.notify = store, notify
        self._released: dict[str, Store] = {}
        self._told: dict[str, int] = {}

    @cached_property
    def device(self) -> DeviceSpec:
        """This machine."""
        return describe_host()

    # ------------------------------------------------------------------ the main job

    def retrieve(
        self, kernel: Any, inputs: Any = None, *, k: int = 5, sizes: Mapping[str, float] | None = None,
        seed: int | None = None, baseline: str | None = None, budget_s: float | None = None,
        model_only: bool = False, competitors: Sequence[str] = (), weights: str | None = None, **named: Any,
    ) -> Retrieval:  # fmt: skip
        """Make a kernel faster with the schedules of kernels like it.

        Args:
            kernel: see `Session`.
            inputs: arrays and scalars by name; or `file.py:function` that returns them; or, of a torch
                module, its example inputs. What is missing is generated.
            k: candidates measured per nest or function.
            sizes: values of symbols and scalar arguments, by name.
            seed: of what is generated.
            baseline: what to beat, of a DaCe kernel: "auto" (`auto_optimize`, the default) or "simplify".
            budget_s: wall time for measuring candidates.
            model_only: rank schedules and measure nothing.
            competitors: what to time in turn with the result, on as many threads. Of a DaCe program "numpy",
                "numba", "torch" and "torch-compile", which run its Python function, and functions of yours as
                `file.py:function`, with arguments of the same names; of TVM functions "torch", and of torch
                programs, which are always timed beside PyTorch as it runs eagerly, "torch-compile", too.
            weights: of a TVM function that leaves the layout of weights free (`layout_free_buffers`, as
                operators of `topi` do): "varying" (the default): packing them is a part of the function and
                of its time; "constant": they are packed once, and that is not counted. The function takes
                them as it did in either case.
            named: sizes and inputs, too: numbers and arrays by name.

        Raises:
            InputError: the kernel, or something given with it, is not what was expected.
            GnnperfError: the kernel cannot be compiled, run or measured.
        """
        started = time.monotonic()
        _check_effort(budget_s, k=k)
        for option, value in (("--beside", competitors or None), ("--budget", budget_s)):
            if value is not None and model_only:
                raise InputError(f"{option} is about what was measured to be fastest; leave out --model-only")
        given = _given(sizes, inputs, seed, named, weights)
        options = Options(k, budget_s, model_only)
        with self._opened(kernel, given, baseline, competitors, not model_only) as (
            program,
            executor,
            beside,
        ):
            recipes = program.schedule_kind == "recipe"
            pipeline = self.pipeline(
                program, executor, options=options, competitors=beside, notify=self.notify, started=started,
                confidence=Confidence.of(self.encoder) if recipes else None,
            )  # fmt: skip
            report, queries = pipeline.run()
            self._tell_left_out()
            if not model_only:
                self._remember(program, queries, executor)
        return self._found(report, queries, executor)

    def tune(
        self, kernel: Any, inputs: Any = None, *, trials: int = 64, sizes: Mapping[str, float] | None = None,
        seed: int | None = None, baseline: str | None = None, budget_s: float | None = None,
        competitors: Sequence[str] = (), weights: str | None = None,
        advance: Callable[[int], contextlib.AbstractContextManager[Advance]]
        = lambda _: contextlib.nullcontext(lambda _steps, _doing: None), **named: Any,
    ) -> Retrieval:  # fmt: skip
        """Search for faster schedules than `retrieve` finds, starting from those.

        Args:
            trials: schedules measured per nest or function, with those that your store knows from before.
            advance: given all trials, opens what is told of (trials done, what comes next).

        The other arguments, and what is raised, are as of `retrieve`. What is measured goes to your store a
        round at a time: interrupted, the same call goes on.
        """
        from gnnperf.retrieval.tuning import Tuning

        started = time.monotonic()
        _check_effort(budget_s, trials=trials)
        given = _given(sizes, inputs, seed, named, weights)
        options = Options(trials, budget_s)
        with self._opened(kernel, given, baseline, competitors, True) as (program, executor, beside):
            memory, tasks = self._memory(program), sum(t.objection is None for t in program.tasks)
            with advance(trials * tasks) as tell:
                # Without a confidence: how sure one may be was learned from few trials.
                pipeline = self.pipeline(
                    program, executor, Tuning, options=options, competitors=beside, notify=self.notify,
                    started=started, trials=trials, memory=memory, advance=tell,
                )  # fmt: skip
                assert isinstance(pipeline, Tuning)
                try:
                    report, queries = pipeline.run()
                except KeyboardInterrupt:
                    raise _interrupted(pipeline.measured, memory) from None
                self._tell_left_out()
        return self._found(report, queries, executor)

    def embed(
        self, *kernels: Any, sizes: Mapping[str, float] | None = None, inputs: Any = None,
        seed: int | None = None, advance: Callable[[], None] = lambda: None, **named: Any,
    ) -> list[TaskEmbedding]:  # fmt: skip
        """The vector and the digest of every task of kernels. advance: is called after each. Raises as
        `retrieve`, and GnnperfError where a kernel has no task."""
        self._check_checkpoint(traces=False)
        given = _given(sizes, inputs, seed, named)
        names: list[tuple[str, str]] = []
        graphs: list[ProgramGraph] = []
        for kernel in kernels:
            with self._readable(kernel, given) as program:
                left_out = [f"{part.part}: {part.reason}" for part in program.skipped]
                found = [task for task in program.tasks if task.objection is None]
                left_out += [f"{task.name}: {task.objection}" for task in program.tasks if task.objection]
                if not found:
                    why = "; ".join(left_out) or "it has none"
                    raise GnnperfError(f"{program.name}: no loop nest to embed; {why}")
                for part in left_out:
                    self.notify(f"{program.name}: left out {part}")
                names += [
                    (str(kernel) if isinstance(kernel, str | Path) else program.name, t.name) for t in found
                ]
                graphs += [task.graph for task in found]
            advance()
        vectors = self.encoder.embed(graphs)
        return [
            TaskEmbedding(kernel, name, graph.digest, vector)
            for (kernel, name), graph, vector in zip(names, graphs, vectors, strict=True)
        ]

    def pipeline(
        self, program: Program, executor: Executor | None, kind: type[Pipeline] = Pipeline, *,
        proposer: Mapping[str, Any] | None = None, **about: Any,
    ) -> Pipeline:  # fmt: skip
        """The pipeline that `retrieve` runs, for a program and an executor of the caller's own: for compilers
        that measure by themselves, and for what judges the pipeline.

        kind: Pipeline, or a class derived from it. proposer: fields of its proposer. about: its other fields.
        """
        proposes = self._proposer(program, **(proposer or {}))
        return kind(program, self.encoder, proposes, executor, self.device, **about)

    # ------------------------------------------------------------------ GPUs

    def propose(
        self, kernel: str, gpu: str, *, k: int = 5, sizes: Mapping[str, float] | None = None,
        data: str | Path | None = None, ignore: Sequence[str] = (), **named: float,
    ) -> ConfigurationProposal:  # fmt: skip
        """The k configurations of a tunable GPU kernel to try first on a GPU, which need not be here.

        Args:
            kernel: name of a description, or a YAML file with one.
            gpu: a name of the catalog, or a YAML file.
            sizes: of the problem, where they are not the description's; `named`, too.
            data: measurements on other GPUs (tunable_kernels.parquet, its folder, or what Kernel Tuner wrote
                on one of them: a cache, or T4 results, .json); None: $GNNPERF_DATA, or those that were
                released with the model.
            ignore: parameters of these measurements that the description does not have: of configurations
                that differ in them alone the fastest counts.

        Raises:
            InputError: no such kernel, GPU, size or data.
        """
        from gnnperf.retrieval.gpu import propose_configurations

        _check_effort(k=k)
        return propose_configurations(kernel, gpu, k, {**(sizes or {}), **named}, data, ignore, self.demand)

    def check_description(
        self, kernel: str, table: str | Path, *, k: int = 5, ignore: Sequence[str] = ()
    ) -> list[TableCheck]:
        """How well a description ranks configurations that were measured, by search space and GPU, were it of
        a kernel that nobody measured.

        Args:
            kernel: name of a description, or a YAML file with one.
            table: measurements (Parquet, or a JSON file of Kernel Tuner).
            k: proposals that are judged.
            ignore: as for `propose`.

        Raises:
            InputError: no such kernel, or no measurements of it.
        """
        from gnnperf.retrieval.gpu import check_description

        _check_effort(k=k)
        return check_description(kernel, table, k, ignore, self.demand)

    def predict(
        self, kernel: Any, gpus: str | Sequence[str], *, inputs: Any = None, fused: bool = False,
        calibrate: str | Path | None = None, dtype: str | None = None,
    ) -> OperatorForecast | ConfigurationForecast:  # fmt: skip
        """The runtime of an operator, a torch model or a configuration of a tunable kernel on GPUs that
        nobody measured.

        Args:
            kernel: "linear:M=512,N=1024,K=768", `model.pt2`, `file.py:function`, "gemm:MWG=64", a torch
                module, or a torch exported program.
            gpus: names of the catalog, or YAML files.
            inputs: example inputs of a torch module, a tuple.
            fused: pointwise operators of a model join what runs right before them.
            calibrate: a CSV file with runs on these GPUs.
            dtype: what fp32 tensors are taken for: "fp64", "tf32", "fp16", "bf16", "fp8", "int8".

        Returns:
            `runtime_s` by GPU, and `predictions` with intervals and what was assumed.

        Raises:
            InputError: no such kernel or GPU, or one that does not have a dtype.
        """
        from gnnperf.retrieval.gpu import predict

        path = None if calibrate is None else Path(calibrate)
        return predict(kernel, gpus, fused, path, self, dtype, inputs)

    # ------------------------------------------------------------------ what it is made of

    @cached_property
    def encoder(self) -> Bundle:
        """The encoder of graphs, with its retrieval head."""
        from gnnperf.nn import Bundle, load_checkpoint

        return load_checkpoint(self._folder_of(Bundle), Bundle)

    @cached_property
    def runtime_head(self) -> RuntimeHead:
        """What predicts operators on GPUs."""
        from gnnperf.nn import load_checkpoint
        from gnnperf.nn.runtime import RuntimeHead

        return load_checkpoint(self.checkpoint or shipped("checkpoints/gpu-runtime"), RuntimeHead)

    @cached_property
    def demand(self) -> DemandBundle:
        """What ranks and predicts configurations of tunable GPU kernels."""
        from gnnperf.nn import load_checkpoint
        from gnnperf.nn.demand import DemandBundle

        return load_checkpoint(self.checkpoint or shipped("checkpoints/tunable-kernels"), DemandBundle)

    def _folder_of(self, model: type[Any]) -> Path:
        """The folder of a checkpoint of such a model: the session's own, where it is one, or the released."""
        from gnnperf.nn.checkpoint import read_metadata

        if self.checkpoint is not None and read_metadata(self.checkpoint)["model"] == model.MODEL:
            return self.checkpoint
        return shipped(f"checkpoints/{model.MODEL}")

    def _check_checkpoint(self, traces: bool) -> None:
        """Raises InputError where the session's own is of a model without a say in the work. traces: whether
        these are ranked."""
        from gnnperf.nn import Bundle
        from gnnperf.nn.checkpoint import read_kind
        from gnnperf.nn.traces import TensorBundle

        if self.checkpoint is not None:
            read_kind(self.checkpoint, Bundle, *([TensorBundle] if traces else []))

    @cached_property
    def _own(self) -> Store | None:
        if self.store is False:
            return None
        location = None if self.store is None else str(self.store)
        try:
            return open_own(location, self.encoder, self.notify)
        except StoreError as error:
            raise StoreError(f"{error}; or name another with --store, or give --no-store") from error

    @cached_property
    def cost_model(self) -> TensorBundle:
        """What ranks scheduled TVM functions."""
        from gnnperf.nn import load_checkpoint
        from gnnperf.nn.traces import TensorBundle

        bundle = load_checkpoint(self._folder_of(TensorBundle), TensorBundle)
        return replace(bundle, vectors=self.device.vectors)

    def _stores(self, model: type[Any]) -> list[Store]:
        """The store of a checkpoint, and the user's own."""
        from gnnperf.nn.checkpoint import STORE

        if model.MODEL not in self._released:
            self._released[model.MODEL] = Store.open(self._folder_of(model) / STORE)
        released = self._released[model.MODEL]
        return [released] if self._own is None else [released, self._own]

    def _tell_left_out(self) -> None:
        """What the stores do not believe of what they were asked for: one line for each store, once."""
        own = self.__dict__.get("_own")  # where it was opened
        for store in [*self._released.values(), *([own] if own is not None else [])]:
            reasons = store.left_out
            if reasons.total() > self._told.get(store.location, 0):
                self._told[store.location] = reasons.total()
                self.notify(
                    f"left out {reasons.total()} entries of {store.location} that cannot be right: "
                    f"{reasons.most_common(1)[0][0]}; `gnnperf store check` tells them all"
                )

    def _proposer(self, program: Program, **about: Any) -> Proposer:
        from gnnperf.nn import Bundle

        if program.schedule_kind == "trace":
            from gnnperf.frontends.tvm.program import TvmProgram
            from gnnperf.nn.traces import TensorBundle
            from gnnperf.retrieval.traces.proposer import TraceProposer

            assert isinstance(program, TvmProgram)
            found = {
                "stores": self._stores(TensorBundle),
                "recipe_stores": self._stores(Bundle),
                "target": program.target,
            }
            if "model" not in about:
                found["model"] = self.cost_model
            return TraceProposer(bundle=self.encoder, device=self.device, **{**found, **about})
        found = {"stores": self._stores(Bundle)}
        return RecipeProposer(bundle=self.encoder, device=self.device, **{**found, **about})

    @contextlib.contextmanager
    def _readable(self, kernel: Any, given: Given) -> Iterator[Program]:
        """A kernel's program, whose tasks have what their graphs need."""
        program = load_program(kernel, given)
        if program.schedule_kind != "recipe":
            yield program
            return
        from gnnperf.backends.cpp.executor import CppExecutor

        executor = CppExecutor(cast("TunableProgram", program))
        try:
            executor.prepare(False)
            yield program
        finally:
            executor.close()

    @contextlib.contextmanager
    def _opened(
        self, kernel: Any, given: Given, baseline: str | None, competitors: Sequence[str], measuring: bool
    ) -> Iterator[tuple[Program, Executor, Sequence[Competitor]]]:
        """A kernel's program, what measures it, and the competitors that are named. The executor comes before
        models and stores are loaded: it may fork."""
        program = load_program(kernel, given)
        if program.schedule_kind != "trace":
            given.refuse(f"{program.name!r}, which is no TVM kernel,", "weights")
        beside: list[Competitor] = []
        executor: Executor
        if program.schedule_kind == "trace":
            from gnnperf.backends.tvm.competitors import COMPILED
            from gnnperf.backends.tvm.executor import TvmExecutor
            from gnnperf.frontends.tvm.program import TvmProgram

            assert isinstance(program, TvmProgram)
            if baseline is not None:
                raise InputError("--baseline: a TVM kernel takes none: expected no such option; leave it out")
            wholes = [COMPILED] if COMPILED in competitors and program.exported is not None else []
            beside = [_competitor(name, program.target) for name in competitors if name not in wholes]
            executor = TvmExecutor(program, measuring, wholes=wholes)
        elif program.schedule_kind == "recipe":
            from gnnperf.backends.cpp.executor import CppExecutor

            executor = CppExecutor(
                cast("TunableProgram", program), baseline, ahead=measuring, competitors=competitors
            )
        else:
            raise InputError(
                f"{program.name}: expected a kernel that this machine runs, got one for GPUs; see `gnnperf "
                "propose` and `gnnperf predict`"
            )
        try:
            self._check_checkpoint(program.schedule_kind == "trace")
            yield program, executor, beside
        finally:
            executor.close()

    def _memory(self, program: Program) -> Memory | None:
        if self._own is None:
            return None
        return Memory(self._own, program.name, program.frontend, self.encoder, self.device)

    def _remember(self, program: Program, queries: Sequence[Query], executor: Executor) -> None:
        """The answer is worth more than what is kept of it: what goes wrong here is told beside it."""
        memory = self._memory(program)
        if memory is not None:
            try:
                memory.remember(queries, executor.provenance)
            except GnnperfError as error:
                self.notify(f"nothing was remembered: {error}")

    def _found(self, report: RetrievalReport, queries: Sequence[Query], executor: Executor) -> Retrieval:
        graphs = {query.graph.digest: query.graph for query in queries}
        return Retrieval(
            **vars(report), graphs=graphs, writer=lambda folder, text: executor.write(folder, queries, text)
        )


def load(checkpoint: str | Path | None = None, store: str | Path | Literal[False] | None = None) -> Session:
    """A `Session`, which does the work for any number of kernels.

    Args:
        checkpoint: a bundle; None: the released ones.
        store: your schedule store; None: the default one; False: none.
    """
    return Session(checkpoint, store)


def _given(
    sizes: Mapping[str, float] | None, inputs: Any, seed: int | None, named: Mapping[str, Any],
    weights: str | None = None,
) -> Given:  # fmt: skip
    """What was given, with numbers among the sizes and arrays among the inputs."""
    numbers = {n: v for n, v in named.items() if isinstance(v, int | float | np.integer | np.floating)}
    arrays = {n: v for n, v in named.items() if n not in numbers}
    for name, value in arrays.items():
        if not hasattr(value, "__array__"):
            raise InputError(f"{name}: expected a number or an array, got {type(value).__name__}")
    if arrays and inputs is not None and not isinstance(inputs, Mapping):
        raise InputError("inputs: expected a dict where arrays are given by name, too")
    both = {**(inputs or {}), **{n: np.asarray(v) for n, v in arrays.items()}} if arrays else inputs
    return Given({**(sizes or {}), **numbers}, both, seed, weights)  # type: ignore[dict-item]  # NumPy's numbers, too


def _check_effort(budget_s: Any = None, **counts: Any) -> None:
    """Raises InputError for a budget that leaves nothing to do."""
    for name, count in counts.items():
        if not isinstance(count, int | np.integer):
            raise InputError(f"{name}: expected a whole number of at least 1, got {quoted(count)}")
        if count < 1:
            raise InputError(f"{name}: expected at least 1, got {count}")
    if budget_s is None:
        return
    if not isinstance(budget_s, int | float | np.integer | np.floating) or not budget_s > 0:  # nor NaN
        raise InputError(f"budget_s: expected a number of seconds above 0, got {quoted(budget_s)}")


def _competitor(name: str, target: Any) -> Competitor:
    from gnnperf.backends.tvm.competitors import TORCH, Torch

    if name != TORCH:
        raise InputError(f"--beside: of a TVM function, expected {TORCH}, got {name!r}")
    return Torch(target)


def _interrupted(trials: int, memory: Memory | None) -> Interrupted:
    """Of a search after that many trials. memory: the store that has them."""
    kept = "nothing was kept (--no-store)"
    if memory is not None:
        kept = f"what was measured is kept in {memory.store.location}; run the same command to go on"
    return Interrupted(f"interrupted after {trials} trials; {kept}")
