"""Is this GPU, host, pod or job idle, since when, how sure: for schedulers and scripts. Unknown means not idle."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.fleet_rows import SILENT_MS
from api.resources.idle_run import Run, both, is_thin, run_of
from api.resources.idle_subject import GONE_SLICE_MS, Asked, is_slice_of, second, subject_of
from core.activity import IDLE, Activity
from core.clock import from_ms, to_ms
from core.evidence import Window
from core.percent import percent
from core.units import DAY_MS, HOUR_MS
from store.queries import idle_now
from store.queries.idle_now import GpuSeen, Stretch

HOURS_BACK_MS: Final = 7 * DAY_MS
"""A run is followed so far back: for a scheduler, idle for a week is idle."""
_AT_WORK: Final[Mapping[Activity, str]] = {
    Activity.STARVED: "a job on it waits for input or for the host",
    Activity.SPINNING: "its kernels run though nothing moves: a job looks stuck, and its owner decides",
    Activity.UNKNOWN: "its newest sample lacks the readings that tell what it does",
}


@dataclass(frozen=True, slots=True)
class IdleGpuView:
    """One GPU of the answer."""

    gpu_uuid: Annotated[str, about("UUID as the driver gives it.")]
    host: Annotated[str | None, about("Host it sits in; null: not known.")]
    index: Annotated[int | None, about("Number on its host; a label, never a key.")]
    idle: Annotated[bool, about("It is known to be idle now.")]
    since: Annotated[
        datetime | None,
        about("Idle since then at the latest, UTC; null: not idle. Looks back seven days at most."),
    ]
    idle_s: Annotated[float | None, about("Seconds from since to the end of the newest sample.")]
    activity: Annotated[Activity | None, about("Of its newest sample; null: silent, or none is kept.")]
    coverage_ratio: Annotated[
        float | None,
        about("Share of that time for which samples vouch; of the newest sample where it is not idle."),
    ]
    last_sample_at: Annotated[datetime | None, about("End of the newest sample, UTC.")]
    why: Annotated[str, about("What the answer rests on, in one sentence.")]


@dataclass(frozen=True, slots=True)
class IdleView:
    """Whether all GPUs of the subject are idle. What is not known is not idle."""

    subject: Annotated[Mapping[str, str], about("kind (gpu, host, pod, job, workload) and id, as asked.")]
    idle: Annotated[bool, about("Every GPU of it is known to be idle now.")]
    since: Annotated[
        datetime | None,
        about("All of it idle since then at the latest, UTC; null: not idle. Looks back seven days at most."),
    ]
    idle_s: Annotated[float | None, about("Seconds from since to the end of the newest samples.")]
    activity: Annotated[
        Activity | None,
        about("parked where any GPU is held, else empty; not idle: of the first GPU that keeps it from it."),
    ]
    coverage_ratio: Annotated[
        float | None, about("The least of its GPUs': share of the time for which samples vouch.")
    ]
    why: Annotated[str, about("What the answer rests on, in one sentence.")]
    gpus: Annotated[list[IdleGpuView], about("Its GPUs, by host and index.")]


def idle(session: Session, now_ms: int, asked: Asked) -> IdleView:
    """The answer for one GPU, host, pod, job or workload.

    Raises:
        UsageError: not one of them was asked for, or its name is of several. NotFoundError: nothing of that name.
    """
    subject = subject_of(session, now_ms, asked)
    looked = {one.id: one for one in (*subject.gpus, *subject.slices)}
    doubts = {one.id: _doubt(one, now_ms) for one in looked.values()}
    runs = _runs(session, now_ms, [key for key, doubt in doubts.items() if doubt is None])
    views = []
    for gpu in subject.gpus:
        slices = [one for one in subject.slices if is_slice_of(one, gpu) and not _is_gone(one, now_ms)]
        views.append(_gpu(gpu, slices, doubts, runs))
    if subject.workload_ids:
        since_when = [one.id for one, view in zip(subject.gpus, views, strict=True) if view.idle]
        held = _runs(session, now_ms, since_when, subject.workload_ids)
        views = [_held(view, held.get(one.id)) for one, view in zip(subject.gpus, views, strict=True)]
    return whole(asked.kind_and_id, views, nothing=subject.nothing)


def _is_gone(one: GpuSeen, now_ms: int) -> bool:
    return now_ms - (one.seen_until_ms or 0) > GONE_SLICE_MS


def _doubt(gpu: GpuSeen, now_ms: int) -> str | None:
    """Why its newest sample does not make it idle; None: it does."""
    until = gpu.seen_until_ms
    if until is None:
        return "no sample of it was ever stored"
    if now_ms - until > SILENT_MS:
        return f"silent: its newest sample ended at {second(until)}"
    if until - now_ms > SILENT_MS:
        return f"its newest sample is dated {second(until)}, ahead of this clock"
    if gpu.activity is None or gpu.span_ms is None or gpu.covered_ms is None:
        return "its newest sample is not kept"
    activity = Activity(gpu.activity)
    if activity not in IDLE:
        return _AT_WORK.get(activity, f"it works ({activity.value.replace('_', ' ')})")
    if is_thin(Stretch(0, gpu.span_ms, gpu.covered_ms, True)):
        return f"readings vouch for {percent(gpu.covered_ms / gpu.span_ms)} of its newest sample only"
    return None


def _runs(
    session: Session, now_ms: int, gpu_ids: Collection[int], workload_ids: Collection[int] = ()
) -> dict[int, Run]:
    """Runs of idleness of GPUs; with workloads, runs in which those held them."""
    if not gpu_ids:
        return {}
    from_ms = now_ms - now_ms % HOUR_MS - HOUR_MS  # the hour before may not be rolled up yet
    near, far = Window(from_ms, now_ms + SILENT_MS), Window(from_ms - HOURS_BACK_MS, from_ms)
    if workload_ids:
        samples = idle_now.held_samples(session, gpu_ids, workload_ids, near)
        hours = idle_now.held_hours(session, gpu_ids, workload_ids, far)
    else:
        samples = idle_now.idle_samples(session, gpu_ids, near)
        hours = idle_now.idle_hours(session, gpu_ids, far)
    found = {one: run_of(samples.get(one, ()), hours.get(one, ()), from_ms) for one in gpu_ids}
    return {one: run for one, run in found.items() if run is not None}


def _gpu(
    gpu: GpuSeen, slices: Sequence[GpuSeen], doubts: Mapping[int, str | None], runs: Mapping[int, Run]
) -> IdleGpuView:
    """A GPU; one in MIG slices is as idle as they are: the mean of a card hides a slice at work."""
    run, doubt = runs.get(gpu.id), doubts[gpu.id]
    for one in slices:
        if doubt is None and doubts[one.id] is not None:
            doubt = f"MIG slice {one.gpu_uuid}: {doubts[one.id]}"
        if run is not None:
            run = both(run, runs.get(one.id))
    is_silent = gpu.activity is None or (doubts[gpu.id] or "").startswith("silent")
    view = IdleGpuView(
        gpu_uuid=gpu.gpu_uuid,
        host=gpu.host,
        index=gpu.gpu_index,
        idle=False,
        since=None,
        idle_s=None,
        activity=None if is_silent else Activity(gpu.activity or ""),
        coverage_ratio=None if gpu.covered_ms is None or not gpu.span_ms else gpu.covered_ms / gpu.span_ms,
        last_sample_at=None if gpu.seen_until_ms is None else from_ms(gpu.seen_until_ms),
        why=doubt or "since when it is idle cannot be told",
    )
    return view if doubt is not None or run is None else _since(view, run)


def _since(view: IdleGpuView, run: Run) -> IdleGpuView:
    parked = "memory or a process holds it, and no work runs"
    what = parked if view.activity is Activity.PARKED else "nothing holds it"
    return replace(
        view,
        idle=True,
        since=from_ms(run.from_ms),
        idle_s=(run.to_ms - run.from_ms) / 1000,
        coverage_ratio=run.coverage_ratio,
        why=f"{what}, since {second(run.from_ms)} at the latest",
    )


def _held(view: IdleGpuView, held: Run | None) -> IdleGpuView:
    """The part of a GPU's idleness in which the workload held it: who came a minute ago has not idled for a day."""
    if not view.idle or view.since is None or view.last_sample_at is None:
        return view
    if held is None:
        why = "since when it is held cannot be told"
        return replace(view, idle=False, since=None, idle_s=None, why=why)
    end = to_ms(view.last_sample_at)
    start = min(max(to_ms(view.since), held.from_ms), end)
    return _since(view, Run(start, end, (view.coverage_ratio or 0.0) * (end - start)))


def whole(kind_and_id: tuple[str, str], gpus: Sequence[IdleGpuView], *, nothing: str) -> IdleView:
    """The answer from those of its GPUs: idle where each of them is; pure."""
    kind, name = kind_and_id
    awake = [one for one in gpus if not one.idle]
    since = max((one.since for one in gpus if one.since is not None), default=None)
    ends = [one.last_sample_at for one in gpus if one.last_sample_at is not None]
    known = [one.coverage_ratio for one in gpus if one.coverage_ratio is not None]
    is_idle = bool(gpus) and not awake and since is not None
    return IdleView(
        subject={"kind": kind, "id": name},
        idle=is_idle,
        since=since if is_idle else None,
        idle_s=max(0.0, (min(ends) - since).total_seconds()) if is_idle and since else None,
        activity=awake[0].activity if awake else _held_or_empty(gpus),
        coverage_ratio=min(known, default=None),
        why=_sentence(gpus, awake, nothing),
        gpus=list(gpus),
    )


def _held_or_empty(gpus: Sequence[IdleGpuView]) -> Activity | None:
    if not gpus:
        return None
    return Activity.PARKED if any(one.activity is Activity.PARKED for one in gpus) else Activity.EMPTY


def _sentence(gpus: Sequence[IdleGpuView], awake: Sequence[IdleGpuView], nothing: str) -> str:
    if not gpus:
        return nothing
    if len(gpus) == 1:
        return gpus[0].why
    if not awake:
        parked = sum(one.activity is Activity.PARKED for one in gpus)
        return f"none of {len(gpus)} GPUs works; {parked} of them {'is' if parked == 1 else 'are'} held"
    return f"{len(awake)} of {len(gpus)} GPUs not known to be idle; {awake[0].gpu_uuid}: {awake[0].why}"
