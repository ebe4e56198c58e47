"""State and events of one GPU in plain words: what is wrong first, then every fact that its agent asked for. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.xids import OF_APPLICATIONS
from api import formats
from api.formats import NBSP, UNKNOWN
from api.words import EVENT, Mark, Word
from core.readings import GpuHealth
from core.samples import GpuEvent
from core.units import HOUR_MS

Facts = Mapping[str, float | str]

MOST_EVENTS: Final = 40
"""Lines of the list; the rest is in the REST answer."""
OLD_MS: Final = HOUR_MS
"""Asked every minute and written at least every ten: what is older is no longer the state of the card."""
_SWITCH: Final = {"enabled": "on", "disabled": "off"}
_ACTIONS: Final = {
    "reset": "reset the GPU",
    "reboot": "reboot the host",
    "drain_p2p": "drain the GPU's peer traffic",
    "drain_and_reset": "drain the GPU, then reset it",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence with the mark before it."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A fact: what it is, its value, and what to know of it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class HealthBlock:
    """What the page prints of a card's state; ``asked_ms`` None: no agent has told."""

    asked_ms: int | None
    said: tuple[Said, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event; ``count`` alike ones in a row are one line, from ``first_ms`` to ``ts_ms``."""

    ts_ms: int
    first_ms: int
    mark: Mark
    word: Word
    message: str
    count: int


def health_block(health: GpuHealth | None, now_ms: int) -> HealthBlock:
    """The state of a card."""
    if health is None:
        return HealthBlock(None, (), ())
    facts = health.facts
    said = [*_complaints(facts)] or [Said(Mark.GOOD, "Nothing wrong was reported.")]
    if now_ms - health.ts_ms > OLD_MS:
        said.insert(0, Said(Mark.NOTE, "This is how it was then: nothing newer has come."))
    return HealthBlock(health.ts_ms, tuple(said), tuple(_lines(facts)))


def alarms(block: HealthBlock, events: Sequence[GpuEvent]) -> tuple[Said, ...]:
    """What belongs at the top of the page: the GPU does not answer, or its state asks for hands."""
    away = [event for event in events if event.kind in {"lost", "stuck", "found"}]
    newest = max(away, key=lambda event: event.ts_ms, default=None)
    gone = newest is not None and newest.kind != "found"
    said = [Said(Mark.BAD, newest.message)] if newest is not None and gone else []
    return (*said, *(one for one in block.said if one.mark is Mark.BAD))


def event_lines(events: Sequence[GpuEvent]) -> tuple[EventLine, ...]:
    """Events, the newest first; the same one again and again is one line."""
    lines: list[EventLine] = []
    for event in sorted(events, key=lambda one: -one.ts_ms):
        mark, word = _event_word(event)
        last = lines[-1] if lines else None
        if last is not None and (last.word, last.message) == (word, event.message):
            lines[-1] = EventLine(last.ts_ms, event.ts_ms, mark, word, event.message, last.count + 1)
        else:
            lines.append(EventLine(event.ts_ms, event.ts_ms, mark, word, event.message, 1))
    return tuple(lines)


def _event_word(event: GpuEvent) -> tuple[Mark, Word]:
    if event.kind == "xid" and event.code in OF_APPLICATIONS:
        return Mark.NOTE, EVENT["xid"][1]
    return EVENT.get(event.kind) or (Mark.NOTE, Word(event.kind.replace("_", " "), ""))


def _complaints(facts: Facts) -> Iterator[Said]:
    """What a person should know or do, the worst first."""
    action = facts.get("recovery_action", "none")
    if action != "none":
        yield Said(Mark.BAD, f"The driver asks to {_ACTIONS.get(str(action), f'act: {action}')}.")
    if facts.get("row_remap_failed"):
        yield Said(Mark.BAD, "A row of memory could not be remapped: have the card replaced.")
    if facts.get("row_remap_pending"):
        yield Said(Mark.WARN, "A row of memory waits to be remapped: reset the GPU when it is free.")
    if facts.get("retired_pages_pending"):
        yield Said(Mark.WARN, "A page of memory waits to be retired: reset the GPU when it is free.")
    lost = _number(facts, "ecc_uncorrected_count")
    if lost:
        errors = "1 uncorrected ECC error" if lost == 1 else f"{formats.figure(lost)} uncorrected ECC errors"
        yield Said(
            Mark.WARN, f"{errors} since the driver was loaded: results from then may be wrong or lost."
        )
    width, most = _number(facts, "pcie_link_width"), _number(facts, "pcie_link_max_width")
    if width and most and width < most:
        longer = "twice" if most == 2 * width else f"{formats.short(most / width)} times"
        yield Said(
            Mark.WARN,
            f"The PCIe link is ×{width:.0f} wide of ×{most:.0f}: copies to and from the host take {longer} as long.",
        )
    if facts.get("ecc_mode") == "disabled":
        yield Said(Mark.NOTE, "ECC is off: errors in memory stay unseen.")


def _lines(facts: Facts) -> Iterator[Line]:
    """Every fact; a card that does not know of one has no line for it."""
    yield from _memory_lines(facts)
    link = _link(facts, "pcie_link_generation", "pcie_link_width")
    most = _link(facts, "pcie_link_max_generation", "pcie_link_max_width")
    if link or most:
        now, top = _number(facts, "pcie_link_generation"), _number(facts, "pcie_link_max_generation")
        resting = "an idle card rests at a lower generation" if now and top and now < top else ""
        yield Line("PCIe link", f"{link or UNKNOWN} of {most or UNKNOWN}", resting)
    replays = _number(facts, "pcie_replay_count")
    if replays is not None:
        yield Line("PCIe replays", formats.figure(replays), "packets sent again since the driver was loaded")
    modes = {
        "persistence": _switch(facts, "persistence_mode"),
        "MIG": _switch(facts, "mig_mode"),
        "compute": str(facts["compute_mode"]).replace("_", " ") if "compute_mode" in facts else None,
    }
    shown = [f"{name} {value}" for name, value in modes.items() if value]
    if shown:
        yield Line("Modes", ", ".join(shown))
    yield from _limit_lines(facts)
    if facts.get("recovery_action") == "none":
        yield Line("Recovery", "none asked for")


def _memory_lines(facts: Facts) -> Iterator[Line]:
    mode = _switch(facts, "ecc_mode")
    if mode:
        yield Line("ECC", mode)
    corrected, lost = _number(facts, "ecc_corrected_count"), _number(facts, "ecc_uncorrected_count")
    if corrected is not None or lost is not None:
        life = _number(facts, "ecc_aggregate_uncorrected_count")
        ever = "" if life is None else f"; uncorrected over the card's life: {formats.figure(life)}"
        yield Line(
            "ECC errors",
            f"{formats.figure(corrected)} corrected, {formats.figure(lost)} uncorrected",
            f"since the driver was loaded{ever}",
        )
    soft, hard = _number(facts, "row_remap_corrected_count"), _number(facts, "row_remap_uncorrected_count")
    if soft is not None or hard is not None:
        total = None if soft is None or hard is None else soft + hard
        note = f"after corrected errors {formats.figure(soft)}, after uncorrected {formats.figure(hard)}"
        yield Line("Remapped rows", formats.figure(total), note if total else "")
    pages = _number(facts, "retired_page_count")
    if pages is not None:
        yield Line("Retired pages", formats.figure(pages))


def _limit_lines(facts: Facts) -> Iterator[Line]:
    default = _number(facts, "power_limit_default_w")
    least, most = _number(facts, "power_limit_min_w"), _number(facts, "power_limit_max_w")
    if default is None and least is None and most is None:
        return
    value = formats.watts(_number(facts, "power_limit_w"))
    span = (
        ""
        if least is None or most is None
        else f"{formats.figure(least)} to {formats.watts(most)} can be set"
    )
    usual = "" if default is None else f"{formats.watts(default)} by default"
    yield Line("Power limit", value, ", ".join(part for part in (usual, span) if part))


def _link(facts: Facts, generation: str, width: str) -> str:
    parts = []
    if (number := _number(facts, generation)) is not None:
        parts.append(f"Gen{NBSP}{number:.0f}")
    if (lanes := _number(facts, width)) is not None:
        parts.append(f"×{lanes:.0f}")
    return NBSP.join(parts)


def _switch(facts: Facts, name: str) -> str | None:
    word = facts.get(name)
    return None if word is None else _SWITCH.get(str(word), str(word))


def _number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else None
