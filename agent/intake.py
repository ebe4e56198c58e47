"""From the frames of the driver process to identities, readings and events in the words of the house."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent import xids
from agent.attribution import Attribution, CpuUse
from agent.driver.frames import Frame
from agent.health import changes
from agent.sources.series import Thing
from agent.windows import Windows
from core.activity import HELD_MEMORY_BYTES
from core.clock import SteadyClock
from core.plausible import plausible_values
from core.readings import GpuHealth, GpuIdentity, GpuReading, ProcessReading
from core.samples import GpuEvent

log = logging.getLogger(__name__)

STUCK_MESSAGE: Final = (
    "A driver call for this GPU does not return: it is left alone and asked again from time to time."
)
LOST_MESSAGE: Final = "The GPU stopped answering."
GONE_MESSAGE: Final = "The GPU is no longer listed."
FOUND_MESSAGE: Final = "The GPU answers again."
OUTSIDE_MS: Final = 15_000
"""Counters of dcgm-exporter are good for so long: its own default period is 30 s, but it is asked every 10 s."""
SAME_ROUND_NS: Final = 2_000_000_000
"""Process lists of one round lie closer than this, two rounds further apart."""

Something = Thing | GpuEvent | GpuHealth


class Intake:
    """Knows which GPUs there are and what state they are in.

    Attributes:
        gpus: identities by UUID, of all that were ever listed.
        away: UUID → ``stuck`` or ``lost``, of those that do not answer.
        servers: LLM servers by their process: flags and the UUIDs of their GPUs.
        missed: rounds that the driver process skipped. tick_s: time of its rounds since ``take_costs``.
    """

    def __init__(self, host: str, attribution: Attribution, clock: SteadyClock) -> None:
        self._host, self._attribution, self._clock = host, attribution, clock
        self.gpus: dict[str, GpuIdentity] = {}
        self.away: dict[str, str] = {}
        self.servers: dict[int, tuple[Any, tuple[str, ...]]] = {}
        self._windows = Windows()
        self._kept: dict[str, dict[str, float]] = {}
        self._links: dict[str, Mapping[str, float]] = {}
        self._pids: dict[str, set[int]] = {}
        self._outside: dict[str, tuple[int, Mapping[str, float]]] = {}
        self._serving: dict[str, tuple[tuple[int, Any], ...]] = {}
        self._health: dict[str, Mapping[str, float | str]] = {}
        self._cpu: dict[int, tuple[int, CpuUse | None]] = {}
        self._ticks: list[int] = []
        self._missed = 0

    def take(self, frame: Frame) -> list[Something]:
        """What one frame says."""
        kind = frame[0]
        if kind == "tick":
            return self._tick(*frame[2:])
        if kind == "gpm":
            uuid, from_ns, to_ns, values = frame[1:]
            known = plausible_values(values)
            return [*self._windows.pair(uuid, self._clock.ms(from_ns), self._clock.ms(to_ns), known)]
        if kind == "processes":
            return self._processes(*frame[1:])
        if kind == "slow":
            self._links[frame[1]] = plausible_values(frame[3])
        elif kind == "health":
            return [*self._healthy(*frame[1:])]
        elif kind == "gpus":
            return [*self._listed(*frame[1:])]
        elif kind == "event":
            return self._event(*frame[1:])
        elif kind == "lost":
            return self._lost(frame[2], frame[1], LOST_MESSAGE, frame[3])
        elif kind == "stuck":
            return self._stuck(frame[1], frame[2])
        elif kind == "down":
            return self._down(frame[1], frame[2])
        return []

    def outside(self, values: Mapping[str, Mapping[str, float]], mono_ns: int) -> None:
        """Profiling counters of dcgm-exporter by UUID: they fill what the card's own GPM does not give."""
        now = self._clock.ms(mono_ns)
        for uuid, known in values.items():
            self._outside[uuid] = now, plausible_values(known)

    def release(self) -> list[Something]:
        """Readings that still wait for their counters; before an end, a pause or a step of the clock."""
        return [*self._windows.release_all()]

    def take_costs(self) -> dict[str, float]:
        """Rounds of the driver process since the last call, as metrics of the agent."""
        ticks, self._ticks = self._ticks, []
        missed, self._missed = self._missed, 0
        costs = {"agent_skipped_count": float(missed)}
        if ticks:
            costs["agent_tick_s"] = sum(ticks) / len(ticks) / 1e9
            costs["agent_tick_max_s"] = max(ticks) / 1e9
        return costs

    def _tick(
        self, took_ns: int, read: Sequence[tuple[str, int, dict[str, float]]], missed: int
    ) -> list[Something]:
        self._ticks.append(took_ns)
        self._missed += missed
        things: list[Something] = []
        for uuid, at_ns, values in read:
            ts_ms = self._clock.ms(at_ns)
            known = plausible_values(values)
            for kept in (self._kept.get(uuid), self._links.get(uuid)):
                if kept:
                    known = {**kept, **known}
            outside = self._outside.get(uuid)
            if outside is not None and ts_ms - outside[0] <= OUTSIDE_MS:
                known = {**outside[1], **known}
            things += self._windows.reading(GpuReading(uuid, ts_ms, known))
        return things

    def _listed(self, identities: Sequence[dict[str, Any]], skipped: Sequence[int]) -> Iterator[Something]:
        """A look round: what is new, what is back, what is gone."""
        now_ms = self._clock.ms_now()
        seen = set()
        for raw in identities:
            one = GpuIdentity(**raw, host=self._host)
            uuid = one.gpu_uuid
            seen.add(uuid)
            old = self.gpus.get(uuid)
            if old != one:
                self.gpus[uuid] = one
                yield one
            if old is not None and old.driver_version != one.driver_version:
                yield GpuEvent(
                    uuid, now_ms, "driver", f"Driver {one.driver_version} instead of {old.driver_version}."
                )
            if self.away.pop(uuid, None) is not None:
                log.info("gpu found again", extra={"gpu_uuid": uuid})
                yield GpuEvent(uuid, now_ms, "found", FOUND_MESSAGE)
        for uuid, one in list(self.gpus.items()):
            if uuid not in seen and one.index not in skipped and uuid not in self.away:
                yield from self._lost(uuid, self._clock.now_ns(), GONE_MESSAGE, None)

    def _leave(self, uuid: str, mono_ns: int, kind: str, message: str, code: int | None) -> list[Something]:
        if uuid in self.away:
            return []
        self.away[uuid] = kind
        self._kept.pop(uuid, None)
        self._links.pop(uuid, None)
        self._serving.pop(uuid, None)
        self._pids.pop(uuid, None)
        event = GpuEvent(uuid, self._clock.ms(mono_ns), kind, message, code)
        return [*self._windows.release(uuid), event]

    def _lost(self, uuid: str, mono_ns: int, message: str, code: int | None) -> list[Something]:
        if uuid not in self.away:
            log.warning("gpu lost", extra={"gpu_uuid": uuid, "why": message, "nvml_code": code})
        return self._leave(uuid, mono_ns, "lost", message, code)

    def _down(self, mono_ns: int, sentence: str) -> list[Something]:
        """The driver as a whole is gone, which the reader has said in one line."""
        message = f"{sentence[:1].upper()}{sentence[1:]}."
        return [t for uuid in self.gpus for t in self._leave(uuid, mono_ns, "lost", message, None)]

    def _stuck(self, mono_ns: int, index: int | None) -> list[Something]:
        away = [uuid for uuid, one in self.gpus.items() if index is None or one.index == index]
        return [thing for uuid in away for thing in self._leave(uuid, mono_ns, "stuck", STUCK_MESSAGE, None)]

    def _event(self, mono_ns: int, uuid: str, kind: str, code: int) -> list[Something]:
        texts = {
            "xid": xids.message(code),
            "mig": "The MIG configuration changed.",
            "lost": "The driver says the GPU is not available.",
            "recovery_action": "The driver asks for a recovery action.",
        }
        log.warning("gpu event", extra={"gpu_uuid": uuid, "kind": kind, "code": code})
        return [GpuEvent(uuid, self._clock.ms(mono_ns), kind, texts.get(kind, f"{kind}."), code)]

    def _healthy(self, uuid: str, mono_ns: int, facts: Mapping[str, float | str]) -> Iterator[Something]:
        ts_ms = self._clock.ms(mono_ns)
        for kind, message in changes(self._health.get(uuid), facts):
            yield GpuEvent(uuid, ts_ms, kind, message)
        self._health[uuid] = facts
        yield GpuHealth(uuid, ts_ms, facts)

    def _processes(
        self, uuid: str, mono_ns: int, listed: Sequence[tuple[Any, ...]] | None
    ) -> list[Something]:
        kept = self._kept.setdefault(uuid, {})
        if listed is None:
            kept.pop("process_count", None)
            self._pids.pop(uuid, None)
            return []
        ts_ms = self._clock.ms(mono_ns)
        # A display server is listed, but does not hold the GPU for work.
        computing = sum(bool(computes or mps) for _pid, _memory, computes, _graphics, mps, *_rest in listed)
        held = max((memory or 0.0 for _pid, memory, *_rest in listed), default=0.0)
        if computing or held < HELD_MEMORY_BYTES:
            kept["process_count"] = float(computing)
        attribution = self._attribution
        things: list[Something] = []
        serving = {}
        for pid, memory, _computes, _graphics, _mps, _instance, busy in listed:
            cpu = self._cpu_of(pid, mono_ns)
            things.append(
                ProcessReading(
                    uuid,
                    ts_ms,
                    pid,
                    attribution.workload(pid),
                    memory_used_bytes=memory,
                    busy_ratio=busy,
                    cpu_ratio=None if cpu is None else cpu.cores,
                    cpu_thread_ratio=None if cpu is None else cpu.busiest_thread_ratio,
                )
            )
            server = attribution.serving(pid)
            if server is not None:
                serving[server[0]] = server[1]
        self._serving[uuid] = tuple(serving.items())
        self._pids[uuid] = {pid for pid, *_rest in listed}
        alive = set().union(*self._pids.values())
        attribution.forget_all_but(alive)
        for pid in self._cpu.keys() - alive:
            del self._cpu[pid]
        self._gather_servers()
        return things

    def _cpu_of(self, pid: int, mono_ns: int) -> CpuUse | None:
        """CPU of a process, measured once a round: one that holds several GPUs is listed by each of them."""
        held = self._cpu.get(pid)
        if held is None or mono_ns - held[0] > SAME_ROUND_NS:
            held = self._cpu[pid] = mono_ns, self._attribution.cpu(pid)
        return held[1]

    def _gather_servers(self) -> None:
        found: dict[int, tuple[Any, tuple[str, ...]]] = {}
        for uuid, servers in self._serving.items():
            for pid, flags in servers:
                gpus = found[pid][1] if pid in found else ()
                found[pid] = flags, (*gpus, uuid)
        self.servers = found
