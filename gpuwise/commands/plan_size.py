"""``gpuwise plan size``: what a model needs on every GPU model, cheapest first."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from api import formats
from core.errors import UsageError
from gpuwise.commands.display import Column, dollars, figure, print_json, print_rows
from gpuwise.commands.options import Source, database_options, open_session

FORMS: Final = "bf16, fp16, fp8, int8, int4, fp4, or a method: awq, gptq, mxfp4, nvfp4"


def _ms(seconds: float) -> str:
    return formats.short(seconds * 1000)


def _range(found: Mapping[str, int | None]) -> str:
    """``2 (1–3)``; ``2 (1–?)`` where the slow end needs more than any number."""
    low, middle, high = found["p10"], found["p50"], found["p90"]
    return f"{middle}" if low == middle == high else f"{middle} ({low}–{'?' if high is None else high})"


WIDTH: Final = 100
CATALOGUE: Final = "catalogue"
AGED: Final = "over 90 days old"

FITTING: Final = (
    Column("gpu_key", "GPU"),
    figure("gpus_needed_range", "GPUS", _range),
    figure("tensor_parallel", "TP", str),
    figure("tokens_per_s", "TOK/S", formats.short),
    figure("itl_s", "ITL MS", _ms),
    figure("ttft_s", "TTFT MS", _ms),
    figure("j_per_token", "J/TOK", formats.short),
    figure("usd_per_hour", "$/H", dollars),
    figure("usd_per_million_tokens", "$/1M", dollars),
    figure("uncertainty_ratio", "±", formats.percent),
    Column("bound_by", "BOUND BY"),
)
FAILING: Final = (
    Column("gpu_key", "GPU"),
    figure("gpus_needed", "GPUS", str),
    figure("usd_per_hour", "$/H", dollars),
    Column("why_not", "WHY NOT"),
)


@click.command()
@click.option("--model", metavar="NAME", help="An open model: llama-3.1-8b, Qwen/Qwen3-32B, …")
@click.option(
    "--config", "config_file", metavar="FILE|-", help="The model's own config.json instead; - reads stdin."
)
@click.option("--precision", metavar="FORM", help=f"Of the weights: {FORMS}. Default: as published.")
@click.option("--kv-precision", metavar="FORM", help="Of the KV cache: auto (16 bits), fp8, int8.")
@click.option(
    "--context-tokens", type=int, metavar="N", help="Prompt and output of one request together [4096]."
)
@click.option("--output-tokens", type=int, metavar="N", help="Of these, generated [512].")
@click.option("--concurrency", type=int, metavar="N", help="Requests at once, whole service [32].")
@click.option(
    "--requests-per-s", type=float, metavar="N", help="Requests that arrive, instead of --concurrency."
)
@click.option("--itl-slo-ms", type=float, metavar="MS", help="Longest mean time between tokens.")
@click.option(
    "--ttft-slo-ms", type=float, metavar="MS", help="Longest time to the first token, without a queue."
)
@click.option("--gpu", multiple=True, metavar="KEY", help="Only this GPU model; repeatable. Default: all.")
@click.option(
    "--sort",
    type=click.Choice(["hour", "token"]),
    default="hour",
    show_default=True,
    help="Cheapest first: per hour, or per generated token.",
)
@database_options
def size(source: Source, config_file: str | None, **given: Any) -> int:
    """Memory, GPUs, speed, energy and money of a model on every GPU, cheapest first.

    Figures are the middle of an 80 % interval; --json has the intervals.
    """
    if config_file is not None:
        given["config"] = _read(config_file)
    answer = _answer(source, given, config_file)
    if source.as_json:
        print_json(answer["items"])
        return 0
    for line in _head(answer["asked"], answer["items"]):
        click.echo(click.wrap_text(line, WIDTH))
    click.echo()
    _tables(answer["items"])
    return 0


def _read(config_file: str) -> dict[str, Any]:
    """The parsed file.

    Raises:
        UsageError: it is not there, or is no JSON object.
    """
    try:
        text = sys.stdin.read() if config_file == "-" else Path(config_file).read_text(encoding="utf-8")
        found = json.loads(text)
    except OSError as error:
        raise UsageError(
            f"--config {config_file}: {error.strerror}; give a config.json, or - for stdin"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"--config {config_file} is no JSON ({error}): give the model's config.json"
        ) from error
    if not isinstance(found, dict):
        raise UsageError(f"--config {config_file} is no JSON object: give the model's config.json")
    return found


def _answer(source: Source, given: dict[str, Any], config_file: str | None) -> Any:
    if source.server is not None:
        from gpuwise.commands.remote import send

        return send(source.server, "plan/size", {**given, "gpu": list(given["gpu"])})
    from api.resources.as_json import to_json
    from api.resources.plan_size import plan_size
    from api.resources.plan_size_inputs import SizeInputs
    from core.clock import now_ms

    where = "config.json" if config_file in {None, "-"} else Path(str(config_file)).name
    with open_session(source.settings) as session:
        return to_json(plan_size(session, source.settings, now_ms(), SizeInputs(**given, config_name=where)))


def _head(asked: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was sized, and what was assumed."""
    load = (
        f"{asked['concurrency']:,} at once"
        if asked["concurrency"] is not None
        else f"{formats.short(asked['requests_per_s'])} requests/s"
    )
    promises = [
        f"{name} ≤ {formats.short(asked[field])} ms"
        for name, field in (("ITL", "itl_slo_ms"), ("TTFT", "ttft_slo_ms"))
        if asked[field] is not None
    ]
    kv = "16-bit" if asked["kv_precision"] == "auto" else asked["kv_precision"]
    what = (
        f"{asked['model']}, {formats.short(asked['parameters'] / 1e9)}B weights in {asked['precision']}, {kv} KV cache; "
        f"{asked['context_tokens']:,} tokens a request, {asked['output_tokens']:,} of them generated; "
        f"{load}; {', '.join(promises) or 'no latency promised'}."
    )
    lines = [what]
    if rows:
        lines.append(_memory(rows[0]))
    if asked["assumed"]:
        lines.append(f"Assumed: {'; '.join(asked['assumed'])}.")
    per = "hour" if asked["sort"] == "hour" else "generated token"
    lines.append(
        f"Cheapest per {per} first. TTFT without a queue. In brackets: with every time at its fast and slow end (?: at no number)."
    )
    return lines


def _memory(row: Mapping[str, Any]) -> str:
    per_token = formats.short(row["kv_bytes_per_token"] / 1024)
    on_each = formats.gib(row["activation_bytes"] + row["overhead_bytes"])
    return (
        f"Weights {formats.gib(row['weights_bytes'])}, KV cache {per_token} KiB a token, activations and overhead {on_each} "
        f"on each GPU. Rule of thumb (bits ÷ 8 × 1.25): {formats.gib(row['rule_of_thumb_bytes'])}."
    ).replace(formats.NBSP, " ")


def _tables(rows: Sequence[Mapping[str, Any]]) -> None:
    sized = [row for row in rows if row["gpus_needed"] is not None]
    kept = [row for row in sized if row["slo_met"] is not False]
    print_rows([_bare(row) for row in kept], FITTING, empty="No GPU model keeps the promise.")
    failing = [row for row in sized if row["slo_met"] is False]
    if failing:
        click.echo("\nNot within the promise (GPUs and money without it):")
        print_rows(failing, FAILING, empty="")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["gpus_needed"] is None:
            reasons.setdefault(row["why_not"].replace(f" of {row['gpu_key']}", ""), []).append(row["gpu_key"])
    if reasons:
        click.echo("\nNot sized:")
        for reason, keys in reasons.items():
            click.echo(click.wrap_text(f"{reason}: {', '.join(keys)}", WIDTH, "  ", "    "))
    click.echo()
    for line in _prices(sized):
        click.echo(click.wrap_text(line, WIDTH))


def _prices(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whose prices the table has, and of when."""
    bases = {row["price_basis"] for row in rows if row["price_basis"] is not None}
    lines = [f"Price: {basis}" for basis in sorted(bases) if not basis.startswith(CATALOGUE)]
    days = sorted(row["price_as_of"] for row in rows if (row["price_basis"] or "").startswith(CATALOGUE))
    if days:
        aged = "; over 90 days old: give your own prices" if any(AGED in basis for basis in bases) else ""
        lines.append(
            f"Price: {CATALOGUE}: median on-demand of each GPU model, {' to '.join(dict.fromkeys((days[0], days[-1])))}{aged}"
        )
    return lines


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "bound_by": row["bound_by"] or ""}
