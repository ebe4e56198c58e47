"""Charts of one sized model: what fills a GPU's memory, and the rate by batch with the batches that matter."""

from markupsafe import Markup

from api import formats
from api.charts_bars import Part, parts_bar
from api.charts_curves import Curve, Mark, curves
from api.charts_scatter import Upright
from api.resources.plan_size import SizeAnswer, SizeRow
from api.resources.plan_size_curve import RateCurve


def memory_bar(row: SizeRow) -> tuple[Markup, str]:
    """What fills one GPU: weights, KV cache, activations and overhead; the rest is free."""
    ranks = row.tensor_parallel or 1
    weights = row.weights_bytes / ranks
    over = row.activation_bytes + row.overhead_bytes
    kv = max(0.0, (row.memory_per_gpu_bytes or 0.0) - weights - over)
    free = max(0.0, row.memory_bytes - weights - kv - over)
    words = (("weights", weights), ("KV cache", kv), ("activations and overhead", over))
    text = ", ".join(f"{name} {formats.gib(size)}" for name, size in words)
    keys = ("k-weights", "k-kv", "k-over")
    label = f"of {formats.gib(row.memory_bytes)} on each GPU: {text}, free {formats.gib(free)}"
    parts = [
        Part(key, size, f"{name} {formats.gib(size)}") for key, (name, size) in zip(keys, words, strict=True)
    ]
    return parts_bar(
        parts, row.memory_bytes, label
    ), f"{formats.gib(free)} of {formats.gib(row.memory_bytes)} free"


def curve_title(curve: RateCurve, best: SizeRow) -> str:
    """What the curve of rate by batch shows."""
    share = curve.batch / (curve.batch + curve.half_batch)
    return f"At {formats.short(round(curve.batch, 1))} requests at once a replica on {best.gpu_key} reaches {formats.percent(share)} of its highest rate"


def curve_chart(curve: RateCurve, best: SizeRow, found: SizeAnswer) -> Markup:
    """Tokens a second by batch of one replica, with the batches that matter."""
    widest = curve.points[-1][0]
    here = best.tokens_per_s / (best.replicas or 1) if best.tokens_per_s is not None else None
    if found.asked.requests_per_s is not None:
        here = None  # the rate is what is asked for, not what the batch could do
    uprights = [Upright(curve.room, f"memory for {curve.room:,}")]
    if curve.half_batch <= widest:
        uprights.append(
            Upright(curve.half_batch, f"half of the rate at {formats.short(round(curve.half_batch, 1))}")
        )
    if curve.promised_batch is not None:
        most = f"{curve.promised_batch:,.0f}" if curve.promised_batch < 1e6 else "any"
        uprights.append(Upright(min(curve.promised_batch, 2 * widest), f"promise kept to {most}"))
    marks = (
        ()
        if here is None
        else (Mark(curve.batch, here, f"{formats.short(here)} tokens/s at {formats.short(curve.batch)}"),)
    )
    return curves(
        (
            Curve(
                "asked",
                tuple((x, y) for x, y, _, _ in curve.points),
                tuple((x, low) for x, _, low, _ in curve.points),
                tuple((x, high) for x, _, _, high in curve.points),
            ),
        ),
        label=f"{curve_title(curve, best)}.",
        x_unit="requests at once in one replica",
        marks=marks,
        uprights=uprights,
        x_to=widest,
        y_to=max(high for _, _, _, high in curve.points),
    )
