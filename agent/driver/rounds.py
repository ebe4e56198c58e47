"""The threads of the driver process: what is asked when, each thread on its own grid of monotonic deadlines.

A round that takes too long skips the deadlines it missed and counts them; it never queues. Slow calls (process lists,
PCIe rate, health) have a thread of their own, and so has the wait for events.
"""

from __future__ import annotations

import threading
import time

from agent.collectors.events import Events, StreamDead
from agent.collectors.gpm import Gpm
from agent.collectors.health import facts
from agent.collectors.identity import identity
from agent.collectors.mig import instances
from agent.collectors.processes import Processes
from agent.collectors.readings import Readings
from agent.driver.board import DRIVER, EVENTS, QUICK, SLOW, Board
from agent.driver.device import Device
from agent.driver.frames import FrameWriter
from agent.driver.library import UNKNOWN, DriverError, GpuLost, Library
from agent.driver.suspended import Suspended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

NS = 1_000_000_000
PROCESSES_S = 5.0
GPM_S = 10.0
HEALTH_S = 60.0
RESCAN_S = 60.0
"""GPUs come, go and come back; MIG instances are made anew."""
EVENT_WAIT_MS = 1_000
EVENTS_AGAIN_S = 30.0
"""An event stream that died is built again after this."""


class Card:
    """One GPU or MIG instance and its collectors."""

    __slots__ = ("device", "gpm", "gpm_since_ns", "linked", "processes", "readings", "uuid")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.uuid: str = device.uuid
        self.readings = Readings(device)
        self.processes = Processes(device)
        self.gpm = Gpm(device)
        self.gpm_since_ns: int | None = None
        self.linked = False
        """A rate of its links was told by the slow round."""

    @property
    def index(self) -> int:
        """NVML index now."""
        return self.device.index

    def pair(self) -> tuple[str, int, int, dict[str, float]] | None:
        """Profiling counters over the time since the last pair: UUID, from, to (monotonic ns), values."""
        if not self.gpm.supported():
            self.gpm_since_ns = None
            return None
        before, now = self.gpm_since_ns, time.monotonic_ns()
        values = self.gpm.pair(now)
        self.gpm_since_ns = now
        return None if values is None or before is None else (self.uuid, before, now, values)

    def close(self) -> None:
        """Give back what the driver holds for it."""
        self.gpm.close()


class Cards:
    """The GPUs of this machine as last seen; shared by the threads, changed by the quick one only."""

    def __init__(self, library: Library, board: Board, writer: FrameWriter, skip: set[int]) -> None:
        self._library, self._board, self._writer = library, board, writer
        self.skip = skip
        self.suspended = Suspended()
        self.held: dict[str, Card] = {}
        self.lost: set[str] = set()
        self.version = 0
        """Grows when the set of cards changes."""
        self.changed = threading.Event()
        """Somebody (an event, an order from outside) asks for a new look round."""

    def scan(self, slot: int) -> None:
        """Look which GPUs there are and tell it; collectors of those still there go on."""
        self._board.enter(slot, DRIVER)
        count = self._library.count()
        self.suspended.rescan()
        asleep = self.suspended.indices()
        held = dict(self.held)
        found = {uuid: card for uuid, card in held.items() if card.index in asleep}
        moved = False
        codes: dict[int, int] = {}
        left_alone = [index for index in range(count) if index in self.skip or index in asleep]
        for index in range(count):
            if index in left_alone:
                continue
            self._board.enter(slot, index)
            for device in self._devices(index, codes):
                old = held.get(device.uuid)
                if old is None:
                    if device.uuid not in self.lost or _answers(device):
                        found[device.uuid] = Card(device)
                    continue
                found[device.uuid] = old
                moved = moved or old.index != device.index
                if old.device is not device:
                    old.device.renew(device)
        self._board.enter(slot, DRIVER)
        for uuid in held.keys() - found.keys():
            held[uuid].close()
            if held[uuid].index in codes:  # there, but lost: the driver's own word for it
                self.lose(held[uuid], codes[held[uuid].index])
        if moved or found.keys() != held.keys():
            self.version += 1
        self.held = found
        self.lost -= found.keys()
        identities = []
        for card in list(found.values()):
            if card.index not in asleep:
                self._board.enter(slot, card.index)
                try:
                    identities.append(identity(card.device))
                except GpuLost as error:
                    self.lose(card, error.code)
        self._board.leave(slot)
        self._writer.write(("gpus", identities, left_alone))

    def _devices(self, index: int, codes: dict[int, int]) -> list[Device]:
        """A GPU, by the device that is held of it where its handle is the same, and its MIG instances.

        None where it does not answer; why goes to ``codes``.
        """
        try:
            handle = self._library.handle(index)
            held = next(
                (c.device for c in list(self.held.values()) if c.index == index and not c.device.is_mig), None
            )
            device = (
                held
                if held is not None and held.handle is handle
                else Device(self._library, handle, index=index)
            )
            return [device, *instances(device)]
        except GpuLost as error:
            codes[index] = error.code
            return []

    def lose(self, card: Card, code: int) -> None:
        """A card stopped answering: said once, asked again at every look round."""
        if card.uuid not in self.lost:
            self.lost.add(card.uuid)
            self._writer.write(("lost", time.monotonic_ns(), card.uuid, code))
        if self.held.pop(card.uuid, None) is not None:
            card.close()


def try_all(device: Device) -> None:
    """Ask a GPU everything that the rounds ask, once: one that was silent must not hang again at once.

    Raises:
        GpuLost: it is there, and does not work.
    """
    for part in (device, *instances(device)):
        card = Card(part)
        card.readings.quick()
        card.gpm.supported()
        card.processes.read()
        card.readings.slow()
        facts(part)
        card.close()


def _answers(device: Device) -> bool:
    """Whether a card that was lost gives readings: a name alone would have it lost again at once."""
    try:
        Readings(device).quick()
    except GpuLost:
        return False
    return True


class Grid:
    """Deadlines at a fixed distance, at whole multiples of it on the wall clock."""

    __slots__ = ("_due", "_step", "missed")

    def __init__(self, step_s: float) -> None:
        self._step = round(step_s * NS)
        self._due = time.monotonic_ns() + self._step - time.time_ns() % self._step
        self.missed = 0

    def wait(self, stop: threading.Event) -> bool:
        """Wait for the next deadline; False when told to stop."""
        ended = stop.wait(max(0, self._due - time.monotonic_ns()) / NS)
        self._due += self._step
        late = time.monotonic_ns() - self._due
        if late > 0:
            missed = late // self._step + 1
            self.missed += missed
            self._due += missed * self._step
        return not ended


def quick(
    cards: Cards,
    board: Board,
    writer: FrameWriter,
    stop: threading.Event,
    *,
    interval_s: float,
    gpm_s: float,
) -> None:
    """Readings of every GPU each interval; GPM pairs at the borders of samples; a look round each minute."""
    grid = Grid(interval_s)
    gpm_ns = round(gpm_s * NS)
    window = time.time_ns() // gpm_ns
    rescan_at = time.monotonic() + RESCAN_S
    while grid.wait(stop):
        if cards.changed.is_set() or time.monotonic() >= rescan_at:
            cards.changed.clear()
            cards.scan(QUICK)
            rescan_at = time.monotonic() + RESCAN_S
        now_window = time.time_ns() // gpm_ns
        with_gpm, window = now_window != window, now_window
        asleep = cards.suspended.indices()
        started = time.monotonic_ns()
        read, pairs = [], []
        for card in list(cards.held.values()):
            if card.index in asleep:
                continue
            board.enter(QUICK, card.index)
            at = time.monotonic_ns()
            try:
                read.append((card.uuid, at, card.readings.quick()))
                if with_gpm:
                    pair = card.pair()
                    if pair is not None:
                        pairs.append(pair)
            except GpuLost as error:
                cards.lose(card, error.code)
        board.leave(QUICK)
        writer.write(("tick", started, time.monotonic_ns() - started, read, grid.missed))
        grid.missed = 0
        for pair in pairs:
            writer.write(("gpm", *pair))


def slow(cards: Cards, board: Board, writer: FrameWriter, stop: threading.Event) -> None:
    """Process lists and PCIe rate every five seconds, health every minute."""
    grid = Grid(PROCESSES_S)
    health_at = 0.0
    first = True
    while first or grid.wait(stop):
        first = False
        with_health = time.monotonic() >= health_at
        if with_health:
            health_at = time.monotonic() + HEALTH_S
        asleep = cards.suspended.indices()
        for card in list(cards.held.values()):
            if stop.is_set() or card.index in asleep:
                continue
            board.enter(SLOW, card.index)
            at = time.monotonic_ns()
            try:
                listed = _known(card.processes.read)
                links = _known(card.readings.slow)
                said = _known(facts, card.device) if with_health else None
            except GpuLost as error:
                cards.lose(card, error.code)
                continue
            finally:
                board.leave(SLOW)
            writer.write(("processes", card.uuid, at, listed))
            if links or card.linked:
                writer.write(("slow", card.uuid, at, links or {}))
                card.linked = bool(links)
            if said is not None:
                writer.write(("health", card.uuid, at, said))


def _known(call: Callable[..., Any], *args: Any) -> Any:
    """The answer, or None at an unknown error: slow calls give it where only they do not work (containers).

    Where the whole card does not work, the quick round says so.
    """
    try:
        return call(*args)
    except GpuLost as error:
        if error.code != UNKNOWN:
            raise
        return None


def events(library: Library, cards: Cards, board: Board, writer: FrameWriter, stop: threading.Event) -> None:
    """Wait for what the driver reports by itself; a stream that dies is built again."""
    while not stop.is_set():
        try:
            _listen(library, cards, board, writer, stop)
        except (StreamDead, DriverError, GpuLost):
            board.leave(EVENTS)
            stop.wait(EVENTS_AGAIN_S)


def _listen(library: Library, cards: Cards, board: Board, writer: FrameWriter, stop: threading.Event) -> None:
    """One stream, until the cards change."""
    version = cards.version
    asleep = cards.suspended.indices()
    whole = [card for card in list(cards.held.values()) if not card.device.is_mig]
    watched = {card.index: card for card in whole if card.index not in asleep}
    board.enter(EVENTS, DRIVER)
    stream = Events(library, _in_turn(watched.values(), board))
    try:
        while not stop.is_set() and cards.version == version:
            board.enter(EVENTS, DRIVER)
            for index, kind, code in stream.wait(EVENT_WAIT_MS):
                if kind == "mig":
                    cards.changed.set()
                if index in watched:
                    writer.write(("event", time.monotonic_ns(), watched[index].uuid, kind, code))
            board.leave(EVENTS)
    finally:
        stream.close()
        board.leave(EVENTS)


def _in_turn(cards: Iterable[Card], board: Board) -> Iterator[Device]:
    """Devices one by one, each announced before it is asked."""
    for card in cards:
        board.enter(EVENTS, card.index)
        yield card.device


def end(cards: Cards, library: Library) -> None:
    """Let go of everything the driver holds for us."""
    for card in list(cards.held.values()):
        card.close()
    library.close()
