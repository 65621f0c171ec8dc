"""`gnnperf train`: LightningCLI."""

from __future__ import annotations

import click

from gnnperf.cli.output import Report, Verb

ANSWERED_WITHOUT_TRAINING = frozenset({"-h", "--help", "--print_config", "--print_shtab"})


class PassThrough(Verb):
    """Hands everything but its own `--json` and a leading `--help` on to LightningCLI."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = [a for a in args if a == "--json"]
        return super().parse_args(ctx, [*own, *(a for a in args if a != "--json")])

    def invoke(self, ctx: click.Context) -> None:
        if any(a.partition("=")[0] in ANSWERED_WITHOUT_TRAINING for a in ctx.params["arguments"]):
            # LightningCLI prints the answer on standard output and exits.
            from gnnperf.training import train

            train([ctx.params["subcommand"], *ctx.params["arguments"]])
        super().invoke(ctx)


@click.command(
    cls=PassThrough, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("subcommand", type=click.Choice(["fit", "validate", "test"]))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[LIGHTNING OPTIONS]...")
def train(subcommand: str, arguments: tuple[str, ...]) -> Report:
    """Train an encoder on a corpus of measurements.

    \b
    gnnperf train fit -c configs/models/first.yaml
    gnnperf train fit -c configs/models/first.yaml --data.corpus FOLDER --trainer.max_epochs 50
    gnnperf train test -c configs/models/first.yaml --ckpt_path runs/first/version_0/checkpoints/best.ckpt
    gnnperf train fit --help        all options

    `fit` ends with a bundle (weights and metadata) in the folder of the run, from the epoch that did best on
    the validation families. Runs are logged as CSV and, offline, for Weights & Biases; WANDB_MODE=online
    uploads as it goes.
    """
    from rich.text import Text

    from gnnperf.training import train as run

    result = run([subcommand, *arguments])
    lines = [f"{name} {value:.4f}" for name, value in sorted(result.figures.items())]
    lines += [f"bundle {result.bundle_folder}, encoder {result.encoder_id}"] if result.bundle_folder else []
    document = {
        "subcommand": result.subcommand,
        "folder": result.folder,
        "bundle": result.bundle_folder,
        "encoder_id": result.encoder_id,
        "figures": result.figures,
        "epochs": result.epochs,
    }
    return Report(document, Text("\n".join(lines)))
