"""What is said of a job that spins: what it costs an hour, which rank to look at, how to end it."""

from dataclasses import dataclass
from typing import Any, Final

from advisor.confidence import duration
from advisor.digest import digest
from advisor.facts import rounded, time_chart, window_facts
from advisor.fleet import label
from core.activity import SPIN_MEMORY_BUSY_RATIO, Activity
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import Action, Effort, Finding, Grade, Risk, Saving, Stake, Subject
from core.hours import GpuHour
from core.percent import percent

RULE_ID: Final = "stuck-job"
MOST_NAMED: Final = 8
WATCHDOG: Final = (
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_TRACE_BUFFER_SIZE=2000"
)


@dataclass(frozen=True, slots=True)
class Spin:
    """A GPU and its unbroken hours of spinning up to its last sample."""

    gpu: GpuEvidence
    hours: tuple[GpuHour, ...]

    @property
    def spin_s(self) -> float:
        """Seconds of spinning that samples vouch for; it may have begun earlier, in an hour of other work."""
        return sum(hour.seconds.get(Activity.SPINNING, 0.0) for hour in self.hours)


@dataclass(frozen=True, slots=True)
class StuckJob:
    """A job whose GPUs spin.

    Attributes:
        subject: the workload, or the GPU where no workload is known.
        spins: its GPUs that spin. others: its GPUs that do not; the rank to look at first.
        use: the workload's use of the first of them; None when not known.
    """

    subject: Subject
    spins: tuple[Spin, ...]
    others: tuple[GpuEvidence, ...]
    use: WorkloadUse | None

    @property
    def since_s(self) -> float:
        """How long all of them have spun: the shortest."""
        return min(spin.spin_s for spin in self.spins)

    @property
    def lost_gpu_h(self) -> float:
        """GPU-hours spun so far."""
        return sum(spin.spin_s for spin in self.spins) / 3600

    @property
    def held_gpus(self) -> int:
        """GPUs that ending the job gives back."""
        return len(self.spins) + len(self.others)

    @property
    def usd_per_hour(self) -> float | None:
        """What they cost an hour; None when one of them has no price."""
        prices = [gpu.price for gpu in (*(spin.gpu for spin in self.spins), *self.others)]
        known = [float(price.usd_per_gpu_hour) for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None


def finding_of(evidence: Evidence, job: StuckJob) -> Finding:
    """The finding: no month is made of something that is ended once."""
    count = len(job.spins)
    cards = f"{count} GPU{'' if count == 1 else 's'}"
    waiting = f" of {job.held_gpus}" if job.others else ""
    usd = job.usd_per_hour
    price = "" if usd is None else f" (${usd:.2f})"
    hours = "1 GPU-hour" if job.held_gpus == 1 else f"{job.held_gpus} GPU-hours"
    first = job.spins[0]
    return Finding(
        rule_id=RULE_ID,
        subject=job.subject,
        cause="spinning",
        title=f"See why {job.subject.label or job.subject.id} does not move",
        because=(
            f"{cards}{waiting} at full utilization for at least {duration(job.since_s / 3600)}, with memory at work in at"
            f" most {percent(SPIN_MEMORY_BUSY_RATIO)} of the time and power near idle."
        ),
        state="spinning",
        confidence=_confidence(job),
        grade=Grade.A,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(),
        no_figure=(
            f"No monthly figure, because a stuck job is ended once: it costs {hours}{price} every hour until then, and"
            f" has spun through {job.lost_gpu_h:.1f} GPU-hours."
        ),
        evidence=_facts(evidence, job),
        actions=_actions(job),
        wrong_when="It compiles or tunes for long, loops over very small kernels, encodes video, or waits at a barrier on purpose.",
        not_claimed="That it may be killed, that it will never move again, and any saving beyond the hours until it ends.",
        gpu_uuids=tuple(spin.gpu.gpu_uuid for spin in job.spins),
        at_stake=Stake(job.held_gpus, usd),
        stage="stop",
        chart=time_chart(
            ((hour.hour_ms, hour.memory_busy_ratio) for hour in first.gpu.hours[-48:]),
            "share of time with memory traffic",
            SPIN_MEMORY_BUSY_RATIO,
        ),
    )


def _confidence(job: StuckJob) -> str:
    unseen = [
        words
        for words, name in (("PCIe", "pcie_bytes_per_s"), ("NVLink", "nvlink_bytes_per_s"))
        if all(getattr(hour, name) is None for spin in job.spins for hour in spin.hours)
    ]
    blind = f" Traffic over {' and '.join(unseen)} was not read." if unseen else ""
    return f"High: measured here, by memory utilization and not by low power.{blind} Why it spins is not measured."


def _facts(evidence: Evidence, job: StuckJob) -> dict[str, Any]:
    hours = [hour for spin in job.spins for hour in spin.hours]
    shares = [digest(evidence, spin.gpu).coverage for spin in job.spins]

    def mean(name: str) -> float | None:
        known = [(value, h.covered_s) for h in hours if (value := getattr(h, name)) is not None]
        total = sum(seconds for _, seconds in known)
        return sum(value * seconds for value, seconds in known) / total if total > 0 else None

    names = ("busy_ratio", "memory_busy_ratio", "dram_active_ratio", "power_w", "power_limit_w")
    links = ("pcie_bytes_per_s", "nvlink_bytes_per_s")
    return {
        **window_facts(evidence, min(shares)),
        **rounded(
            {
                "spinning_s": job.since_s,
                "spinning_gpus": len(job.spins),
                "job_gpus": job.held_gpus,
                "lost_gpu_h": job.lost_gpu_h,
                "gpu_h_per_hour_until_ended": job.held_gpus,
                "usd_per_hour_until_ended": job.usd_per_hour,
                "gpus": [label(spin.gpu) for spin in job.spins[:MOST_NAMED]],
                "gpus_that_do_not_spin": [label(gpu) for gpu in job.others[:MOST_NAMED]] or None,
                **{name: mean(name) for name in (*names, *links)},
                "bare_idle_w": job.spins[0].gpu.bare_idle_w,
            }
        ),
    }


def _actions(job: StuckJob) -> tuple[Action, ...]:
    found = [Action("Look at the stacks of its processes", _stacks(job))]
    if job.others:
        found.insert(
            0,
            Action(
                f"Look first at {', '.join(label(gpu) for gpu in job.others[:MOST_NAMED])}: it does not spin."
            ),
        )
    found.append(Action("When it is stuck, end it and start from the checkpoint", _end(job.use)))
    found.append(Action("Let a lost rank end the job next time, and keep its trace", WATCHDOG))
    return tuple(found)


def _stacks(job: StuckJob) -> str:
    pid = None
    if job.use is not None and job.use.workload.kind == "process":
        pid = job.use.workload.key.split(":", maxsplit=1)[0]
    return f"py-spy dump --pid {pid or 'PID'}"


def _end(use: WorkloadUse | None) -> str | None:
    """The command that ends what holds the GPUs; None when that is not known."""
    if use is None:
        return None
    workload = use.workload
    told = dict(workload.attributes)
    if workload.kind == "pod" and "pod" in told:
        return f"kubectl delete pod {told['pod']}" + (
            f" -n {told['namespace']}" if "namespace" in told else ""
        )
    commands = {
        "slurm_job": f"scancel {workload.key}",
        "container": f"docker stop {told.get('container_id', workload.key)[:12]}",
        "systemd_unit": f"systemctl restart {workload.name}",
        "process": f"kill -INT {workload.key.split(':', maxsplit=1)[0]}",
    }
    return commands.get(workload.kind)
