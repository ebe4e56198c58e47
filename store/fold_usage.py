"""Who used a GPU in one clock hour: its time and energy split among the workloads seen on it. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.activity import Activity, is_active
from core.hour_merge import WEAKEST_LAST
from core.hours import UsageHour
from core.readings import WorkloadKey
from core.samples import GpuSample, ProcessSample
from core.sharing import ShareMethod
from store.engine_effect import UNTOLD, effective
from store.usage_shares import WHOLE, Holder, SliceHolders, Split, by_figures, by_slices, identity


@dataclass(slots=True)
class _Mean:
    """A mean over the time that has the figure."""

    total: float = 0.0
    weight_ms: int = 0

    def add(self, value: float | None, part_ms: int) -> None:
        if value is not None:
            self.total += value * part_ms
            self.weight_ms += part_ms

    @property
    def value(self) -> float | None:
        return self.total / self.weight_ms if self.weight_ms else None


@dataclass(slots=True)
class _Account:
    """What one workload (or nobody) had of the hour so far."""

    workload: WorkloadKey | None = None
    allocated_ms: int = 0
    active_ms: int = 0
    effective_ms: int = 0
    memory_byte_ms: float | None = None
    energy_j: float | None = None
    methods: set[str] = field(default_factory=set)
    cpu: _Mean = field(default_factory=_Mean)
    cpu_thread: _Mean = field(default_factory=_Mean)


class _Accounts:
    """Accounts of one GPU's hour, one to a workload: what else is known of a workload (name, attributes) may change."""

    def __init__(self) -> None:
        self._by_key: dict[object, _Account] = {}

    def of_nobody(self) -> _Account:
        return self._by_key.setdefault(None, _Account())

    def of(self, holder: Holder, sample: GpuSample) -> _Account:
        key = identity(holder)
        account = self._by_key.get(key)
        if account is None:
            account = self._by_key[key] = _Account(holder.workload)
        if holder.cpu_ratio is not None or holder.cpu_thread_ratio is not None:
            account.cpu.add(holder.cpu_ratio, sample.covered_ms)
            account.cpu_thread.add(holder.cpu_thread_ratio, sample.covered_ms)
        return account

    def __iter__(self) -> Iterator[_Account]:
        return iter(self._by_key.values())


def holders_by_time(
    samples: Sequence[GpuSample],
    processes: Iterable[ProcessSample],
    engines: Mapping[WorkloadKey, frozenset[int]],
) -> dict[int, list[Holder]]:
    """Who held one GPU in each of its intervals, by ``ts_ms``.

    Args:
        samples: the GPU's.
        processes: what processes held of it.
        engines: engines that run on it with the intervals they were seen in: they stand in where no process was
            seen and the GPU was not empty (imports know engines, not processes).
    """
    holders: dict[int, list[Holder]] = {}
    for process in processes:
        holders.setdefault(process.ts_ms, []).append(
            Holder(
                process.workload,
                process.memory_used_bytes,
                process.cpu_ratio,
                process.cpu_thread_ratio,
                process.busy_ratio,
            )
        )
    for sample in samples if engines else ():
        if sample.ts_ms not in holders and sample.activity is not Activity.EMPTY:
            seen = [Holder(engine, None) for engine, times in engines.items() if sample.ts_ms in times]
            if seen:
                holders[sample.ts_ms] = seen
    return holders


def fold_usage_hour(
    gpu_uuid: str,
    hour_ms: int,
    samples: Sequence[GpuSample],
    holders: Mapping[int, Sequence[Holder]],
    *,
    method: ShareMethod = ShareMethod.MEMORY_TIME,
    slices: Sequence[SliceHolders] = (),
    by_engine: Mapping[int, bool] = UNTOLD,
) -> list[UsageHour]:
    """Split the covered time and the energy of one GPU's hour among those who held it.

    Time nobody is known to have held is the row without workload, and so is that of MIG slices nobody used. The rows
    sum to the hour: milliseconds exactly, joules but for the last bit.

    Args:
        gpu_uuid, hour_ms, samples: of which GPU and hour. holders: who held it, by ``ts_ms``.
        method: how time that several held together is split. slices: of a card to be split by MIG slice.
        by_engine: as of ``fold_gpu_hour``.
    """
    accounts = _Accounts()
    for sample in samples:
        present = holders.get(sample.ts_ms, ())
        split = by_slices(present, sample.ts_ms, slices) if slices else None
        if split is None and len(present) > 1:
            split = by_figures(present, method)
        if split is not None:
            _share(accounts, sample, split)
        elif present:
            account = accounts.of(present[0], sample)
            account.methods.add(WHOLE)
            memory_bytes = present[0].memory_bytes
            if memory_bytes is None:  # alone on the card: what it holds is what the card says
                memory_bytes = sample.values.get("memory_used_bytes")
            _book(account, sample, sample.covered_ms, _energy(sample), memory_bytes, by_engine=by_engine)
        else:
            _book(accounts.of_nobody(), sample, sample.covered_ms, _energy(sample), None)
    return [
        _usage(account, gpu_uuid, hour_ms)
        for account in accounts
        if account.allocated_ms > 0 or account.energy_j is not None
    ]


def _share(accounts: _Accounts, sample: GpuSample, split: Split) -> None:
    parts_ms = _split_ms(sample.covered_ms, split.ratios)
    parts_j = _split(_energy(sample), split.ratios)
    for holder, part_ms, part_j in zip(split.holders, parts_ms, parts_j, strict=True):
        account = accounts.of_nobody() if holder is None else accounts.of(holder, sample)
        account.methods.add(split.method)
        memory_bytes = None if holder is None else holder.memory_bytes
        _book(account, sample, part_ms, part_j, memory_bytes, works=holder is not None)


def _split_ms(whole: int, shares: Sequence[float]) -> list[int]:
    """Whole milliseconds by share; what rounding leaves goes to the largest."""
    parts = [int(whole * share) for share in shares]
    parts[shares.index(max(shares))] += whole - sum(parts)
    return parts


def _split(whole: float | None, shares: Sequence[float]) -> list[float | None]:
    if whole is None:
        return [None] * len(shares)
    parts: list[float | None] = [whole * share for share in shares]
    largest = shares.index(max(shares))
    parts[largest] = whole - sum(part for at, part in enumerate(parts) if at != largest and part is not None)
    return parts


def _energy(sample: GpuSample) -> float | None:
    return sample.values.get("energy_j")


def _book(
    account: _Account,
    sample: GpuSample,
    part_ms: int,
    part_j: float | None,
    memory_bytes: float | None,
    *,
    works: bool = True,
    by_engine: Mapping[int, bool] = UNTOLD,
) -> None:
    """``works`` False: nothing ran there, whatever the card did elsewhere."""
    account.allocated_ms += part_ms
    if works and is_active(sample.activity):
        account.active_ms += part_ms
        if effective(sample, by_engine):
            account.effective_ms += part_ms
    if memory_bytes is not None:
        account.memory_byte_ms = memory_bytes * sample.covered_ms + (account.memory_byte_ms or 0.0)
    if part_j is not None:
        account.energy_j = part_j + (account.energy_j or 0.0)


def _usage(account: _Account, gpu_uuid: str, hour_ms: int) -> UsageHour:
    weakest = max(account.methods or {WHOLE}, key=WEAKEST_LAST.index)
    return UsageHour(
        workload=account.workload,
        gpu_uuid=gpu_uuid,
        hour_ms=hour_ms,
        allocated_s=account.allocated_ms / 1000,
        active_s=account.active_ms / 1000,
        effective_s=account.effective_ms / 1000,
        memory_byte_s=None if account.memory_byte_ms is None else account.memory_byte_ms / 1000,
        energy_j=account.energy_j,
        share_method=weakest,
        cpu_ratio=account.cpu.value,
        cpu_thread_ratio=account.cpu_thread.value,
    )
