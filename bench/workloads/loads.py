"""The labelled loads: what runs, and what a good agent should say of it. No torch here: tests read this list."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

BATCHES: Final = (1, 8, 64, 256)
SHAPES: Final = ("1b", "8b")
LEAST_S: Final = 60


@dataclass(frozen=True, slots=True)
class Load:
    """One load.

    Attributes:
        name: of its recording.
        label: for people.
        module: file of this folder that runs it; None: nothing runs.
        expect: activities (``core.activity``) that would be right for it.
        options: its flags.
        copies: processes at once.
        unit: what it counts.
    """

    name: str
    label: str
    module: str | None
    expect: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    copies: int = 1
    unit: str = ""


def _decodes() -> Iterator[Load]:
    for shape in SHAPES:
        for batch in BATCHES:
            # Small batches wait for memory; at 256 the matrices of the small shape may wait for neither alone.
            expect = ("memory_bound",) if batch <= 64 else ("memory_bound", "mixed", "compute_bound")
            options = {"shape": shape, "batch": str(batch)}
            yield Load(
                f"decode-{shape}-{batch}",
                f"Llama-shaped decode, {shape.upper()}, batch {batch}",
                "decode",
                expect,
                options,
                unit="tokens",
            )


LOADS: Final[tuple[Load, ...]] = (
    Load("empty", "empty card", None, ("empty",)),
    Load("parked", "parked CUDA context", "parked", ("parked",)),
    *_decodes(),
    Load("prefill", "prefill, 8B", "prefill", ("compute_bound",), {"shape": "8b"}, unit="tokens"),
    Load("matmul-bf16", "large bf16 matrix product", "matmul", ("compute_bound",), {"dtype": "bf16"}, unit="FLOP"),
    # Without tensor cores the fp32 pipes are the limit: compute-bound to the card, wasteful to its owner.
    Load("matmul-fp32", "the same in fp32 without TF32", "matmul", ("compute_bound", "busy", "mixed"), {"dtype": "fp32"}, unit="FLOP"),
    Load("stream", "memory-streaming kernel", "stream", ("memory_bound",), unit="bytes"),
    Load("starved", "training step fed by a slow loader", "starved", ("starved", "mixed"), unit="steps"),
    Load("spinning", "kernel spinning on a flag", "spinning", ("spinning",), unit="launches"),
    Load("shared", "two processes share the card (decode 1B, batch 8, twice)", "decode", ("memory_bound", "mixed"), {"shape": "1b", "batch": "8"}, copies=2, unit="tokens"),
    Load("empty-again", "empty card, after the heat", None, ("empty",)),
)  # fmt: skip
"""In the order in which they run: the card is empty first, while it is cold, and again at the end."""


def chosen(names: str | None) -> tuple[Load, ...]:
    """Loads by comma-separated names or beginnings of names (``decode-8b``); all when None.

    Raises:
        ValueError: a name that fits nothing.
    """
    if names is None:
        return LOADS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if not any(_fits(load, name) for load in LOADS):
            raise ValueError(f"no load is called {name!r}: {', '.join(load.name for load in LOADS)}")
    return tuple(load for load in LOADS if any(_fits(load, name) for name in wanted))


def _fits(load: Load, name: str) -> bool:
    return load.name == name or (load.name.startswith(f"{name}-") and name != "empty")
