"""What `gnnperf retrieve` and `gnnperf tune` print for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.output import Report
from gnnperf.errors import GnnperfError, MeasureError

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec
    from gnnperf.graph import ProgramGraph
    from gnnperf.measure import Evidence
    from gnnperf.retrieval.report import Comparison, RetrievalReport
    from gnnperf.session import Retrieval


def saved(run: Callable[[], Retrieval], output: Path | None) -> tuple[Retrieval, GnnperfError | None]:
    """What was found, and what went wrong in writing it: the answer is worth more than the files. Refuses a
    folder that cannot be written before any work is done."""
    if output is not None:
        from gnnperf.backends.folder import check_output

        check_output(output)
    result = run()
    if output is not None:
        try:
            result.save(output)
        except GnnperfError as error:
            return result, error
    return result, None


def measured_report(result: Retrieval, failure: GnnperfError | None, explain: bool) -> Report:
    """What `retrieve` and `tune` print."""
    page = partial(page_of_retrieval, result, result.graphs)
    if result.failed:
        failure = failure or MeasureError(result.note)
    return Report(result.to_dict(), retrieval_view(result, explain), failure, page)


def page_of_retrieval(result: RetrievalReport, graphs: Mapping[str, ProgramGraph]) -> str:
    """HTML of `retrieve`. graphs: of the nests, by digest."""
    from gnnperf.devices import describe_host
    from gnnperf.report import beats_roof, retrieval_page

    measured = any(nest.baseline_s is not None for nest in result.nests)
    device = _with_peaks() if measured else describe_host()
    if beats_roof(result, graphs, device):
        click.echo("gnnperf: a nest beats the peaks of this machine: measuring them again", err=True)
        device = _with_peaks(refresh=True)
    return retrieval_page(result, graphs, device)


def _with_peaks(refresh: bool = False) -> DeviceSpec:
    """This machine with its measured peaks, for rooflines; they take some seconds the first time."""
    from gnnperf.devices import describe_host, probe

    try:
        if describe_host().bandwidth_gbps is None:
            click.echo("gnnperf: measuring the peaks of this machine, once", err=True)
        return probe(refresh)
    except GnnperfError as error:
        click.echo(f"gnnperf: no rooflines: {error}", err=True)
        return describe_host()


def retrieval_view(result: RetrievalReport, explain: bool) -> Any:
    """What was found, as a rich renderable."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [_summary(result)]
    table = Table("nest", "share", "neighbour", "distance", "schedule", "status", "speedup", box=None)
    if any(nest.confidence is not None for nest in result.nests):
        table.add_column("confidence")
    for nest in result.nests:
        rows = [_row(nest, tried, explain) for tried in (nest.candidates if explain else _shown(nest))]
        if nest.accepted is not None and not _shown(nest):  # its own baseline, or of a nest that is alike
            rows.insert(0, ["", "", nest.accepted_words, "kept", ""])
        elif nest.abstained or not rows:
            near = nest.neighbours[0] if nest.neighbours else None
            rows.insert(0, [near["kernel"], f"{near['distance']:.3f}"] if near else ["", ""])
            rows[0] += [nest.reason, "abstained", ""]
        if nest.confidence is not None:
            rows[0].append(f"{nest.confidence:.0%}")
        share = "" if nest.share is None else f"{nest.share:.0%}"
        for position, row in enumerate(rows):
            table.add_row(*((nest.name, share) if position == 0 else ("", "")), *row)
    if result.nests:
        parts.append(table)
    named = [(nest.name, found) for nest in result.nests for found in nest.beside]
    parts += [Text(line) for line in (*_searches(result), *_beside(named))]
    if explain:
        parts += [Text(line) for line in _explanations(result)]
    return Group(*parts)


def _summary(result: RetrievalReport) -> Any:
    from rich.text import Text

    lines = _beside([(result.kernel, found) for found in result.beside])
    if result.baseline is not None and result.tuned is not None:
        lines.append(
            f"{result.kernel} on {result.device}: {result.baseline_name} {_duration(result.baseline)} -> "
            f"{_duration(result.tuned)}: {_speedup(result.speedup, result.speedup_interval)}"
        )
        verified = f"results verified {_on(result.verification)}, " if result.verified else ""
        lines.append(f"{verified}{result.candidates_measured} candidates measured in {result.wall_s:.1f} s")
    if result.note and not result.failed:
        lines.append(result.note)
    judged = [nest.confident for nest in result.nests if nest.confident is not None]
    if judged:
        lines.append(_confidence(sum(judged), len(judged)))
    if result.baseline_note:
        lines.append(f"baseline is {result.baseline_name}: {result.baseline_note}")
    lines += [
        f"baseline of {nest.name} is {nest.baseline_name}: {nest.baseline_note}"
        for nest in result.nests
        if nest.baseline_note and nest.baseline_name != result.baseline_name
    ]
    lines += [f"not tuned: {part['part']}: {part['reason']}" for part in result.skipped]
    return Text("\n".join(lines))


def _on(evidence: Evidence | None) -> str:
    """What results were verified on."""
    count = len(evidence.inputs) if evidence else 1
    return f"on {count} sets of inputs" if count > 1 else "on the inputs"


def _confidence(sure: int, nests: int) -> str:
    """What is said of the nests that were measured."""
    said = f"confident to be within 10% of the best known: {sure} of {nests} nests"
    return said if sure == nests else f"{said}; a larger -k may find more"


def _shown(nest: Any) -> list[Any]:
    """The winner, or else the best of what was tried; nothing of a nest that was left alone."""
    if nest.accepted is not None:
        return [t for t in nest.candidates if t.schedule == nest.accepted][:1]
    if nest.abstained:
        return []
    return sorted(nest.candidates, key=lambda t: -(t.speedup or 0.0))[:1]


def _row(nest: Any, tried: Any, explain: bool) -> list[str]:
    kept = " (kept)" if nest.accepted is not None and tried.schedule == nest.accepted else ""
    return [
        tried.neighbour_kernel,
        f"{tried.distance:.3f}",
        tried.words + (f" - {tried.detail}" if explain and tried.detail else ""),
        tried.status + kept,
        _speedup(tried.speedup, tried.speedup_interval),
    ]


def _searches(result: RetrievalReport) -> list[str]:
    """What `gnnperf tune` did, a line for each nest."""
    words = {"given": "transferred", "search": "searched", "known": "known from before"}
    lines = []
    for nest in result.nests:
        if nest.search is not None:
            counts = nest.search["origins"].items()
            parts = ", ".join(f"{count} {words.get(origin, origin)}" for origin, count in counts if count)
            ended = "; the search finds nothing new any more" if nest.search["exhausted"] else ""
            lines.append(f"{nest.name}: schedules measured: {parts}{ended}")
    return lines


def _beside(named: Sequence[tuple[str, Comparison]]) -> list[str]:
    """Other implementations of what is named, a line each."""
    lines = []
    for name, found in named:
        if found.timing is None:
            lines.append(f"{name}: {found.library}: {found.detail or found.status}")
            continue
        assert found.speedup is not None and found.speedup_interval is not None
        low, high = found.speedup_interval
        said = f"what is kept is {_speedup(found.speedup, found.speedup_interval)} as fast"
        if high < 1:
            said = f"it is faster than what is kept: {_speedup(1 / found.speedup, (1 / high, 1 / low))}"
        lines.append(f"{name}: {found.library} {_duration(found.timing)}; {said}")
    return lines


def _explanations(result: RetrievalReport) -> list[str]:
    lines = []
    for nest in result.nests:
        near = ", ".join(f"{n['kernel']} ({n['distance']:.3f})" for n in nest.neighbours) or "none"
        lines.append(f"{nest.name}: neighbours by distance: {near}")
        if nest.reason:
            lines.append(f"{nest.name}: {nest.reason}")
    return lines


def _speedup(speedup: float | None, interval: tuple[float, float] | None) -> str:
    if speedup is None:
        return ""
    return f"{speedup:.2f}x" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _duration(timing: Any) -> str:
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "us"))
    scale, unit = next((u for u in units if timing.runtime_s * u[0] >= 1), units[-1])
    median, lo, hi = (f"{t * scale:#.4g}".rstrip(".") for t in (timing.runtime_s, *timing.interval_s))
    return f"{median} {unit} [{lo}, {hi}]"
