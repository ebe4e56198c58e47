"""Words for people, said once: activities, statuses, grades, events, kinds of workloads. Order of activities is that of every stack and legend."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from core.activity import Activity
from core.finding import Finding, Grade, Status
from core.readings import WorkloadKey


@dataclass(frozen=True, slots=True)
class Word:
    """A short name and the sentence behind it."""

    name: str
    help: str


ACTIVITY: Final[dict[Activity, Word]] = {
    Activity.COMPUTE_BOUND: Word("compute-bound", "the math pipes are the limit"),
    Activity.MIXED: Word("mixed", "work with neither math nor memory as the limit"),
    Activity.MEMORY_BOUND: Word("memory-bound", "reading device memory is the limit"),
    Activity.BUSY: Word("busy, nature unknown", "work seen, but no counters that say what kind"),
    Activity.STARVED: Word("starved", "a job waits for input or host"),
    Activity.SPINNING: Word("stuck", "kernels run, nothing moves"),
    Activity.PARKED: Word("parked", "memory held, no work"),
    Activity.EMPTY: Word("empty", "no process, no memory held"),
    Activity.UNKNOWN: Word("unknown", "samples that cannot tell"),
}

STATUS: Final[dict[Status, Word]] = {
    Status.OPEN: Word("open", "nobody has taken it yet"),
    Status.CLAIMED: Word("claimed", "somebody works on it"),
    Status.DONE: Word("done", "acted on; later samples will show"),
    Status.VERIFIED: Word("verified", "later samples confirm it"),
    Status.REOPENED: Word("reopened", "it came back"),
    Status.SNOOZED: Word("snoozed", "out of sight until a date"),
    Status.DISMISSED: Word("dismissed", "judged not to apply; leaves the totals"),
    Status.GONE: Word("gone", "no longer found; nobody acted on it here"),
}

GRADE: Final[dict[Grade, str]] = {
    Grade.A: "measured here",
    Grade.B: "fitted here",
    Grade.C: "formula",
    Grade.D: "literature",
}


class Mark(StrEnum):
    """The sign before a sentence; each has a shape of its own, so that nothing rests on colour."""

    GOOD = "good"
    NOTE = "note"
    WARN = "warn"
    BAD = "bad"


EVENT: Final[dict[str, tuple[Mark, Word]]] = {
    "xid": (
        Mark.BAD,
        Word("driver error (XID)", "the driver reported an error of the card or of a program on it"),
    ),
    "lost": (Mark.BAD, Word("lost", "the GPU stopped answering")),
    "stuck": (Mark.BAD, Word("driver call hangs", "a call for this GPU does not return; the rest goes on")),
    "unavailable": (Mark.BAD, Word("not available", "the driver says that the GPU cannot be used")),
    "found": (Mark.GOOD, Word("back", "the GPU answers again")),
    "driver": (Mark.NOTE, Word("other driver", "the driver was exchanged")),
    "ecc": (Mark.BAD, Word("memory error", "an error that ECC could not correct")),
    "row_remap": (Mark.WARN, Word("memory row remapped", "a bad row of memory was replaced by a spare one")),
    "retired_pages": (Mark.WARN, Word("memory page retired", "a bad page of memory is no longer used")),
    "recovery_action": (
        Mark.BAD,
        Word("recovery needed", "the driver asks for a reset, a reboot or a drain"),
    ),
    "pcie_link": (Mark.WARN, Word("PCIe link changed", "the link to the host has another width")),
    "model": (Mark.NOTE, Word("other model", "an LLM engine on the card serves another model")),
    "precision": (
        Mark.NOTE,
        Word("other precision", "an LLM engine on the card serves its model in another form"),
    ),
    "power_limit": (Mark.NOTE, Word("power limit changed", "somebody set another limit")),
    "mode": (Mark.NOTE, Word("mode changed", "persistence, compute, MIG or ECC mode")),
    "mig": (Mark.NOTE, Word("MIG layout changed", "the card was cut into other instances")),
    "clock": (Mark.NOTE, Word("clock set", "the host's clock was moved")),
    "agent": (Mark.NOTE, Word("agent", "something about the agent itself")),
}
"""Kinds of ``core.samples.GpuEvent``, with how bad each is."""

WORKLOAD: Final = {
    "process": "process",
    "container": "container",
    "pod": "pod",
    "slurm_job": "Slurm job",
    "systemd_unit": "systemd service",
    "engine": "LLM engine",
}


NOTICE: Final[dict[str, str]] = {
    "saved": "Saved.",
    "added": "Added.",
    "ended": "Ended: it no longer applies from now on; what it did before stays.",
    "removed": "Removed.",
    "revoked": "Revoked: it opens nothing any more.",
    "test-sent": "A test message is on its way; the list below says how it fared.",
    "left-alone": "Left alone: what was open about it is snoozed until that ends.",
    "heard-again": "Ended: it is judged again, and what it had set aside is open again.",
    "threshold-set": "Set: it holds from the next run of the rules on.",
    "threshold-ended": "Given back: the value of gpuwise.toml or the default holds again.",
    "step-taken": "Noted, with who, when and why.",
}
"""What a page says after a form was taken, by its key in the address (``said=saved``): an address cannot put words in our mouth."""

TOGETHER: Final = {
    "empty-gpu": "Release {count} empty GPUs on {hosts}",
    "parked-model": "Unload the idle models from {count} GPUs on {hosts}",
}
"""Title of findings of one rule on neighbouring GPUs, said at once."""


def grade_word(finding: Finding) -> str:
    """How the figure was had, or that there is little data behind it."""
    return "little data yet" if finding.is_short_of_data else GRADE[finding.grade]


def workload_kind(workload: WorkloadKey) -> str:
    """What kind of workload it is, a pod with its namespace: ``pod in ml-team``."""
    kind = WORKLOAD.get(workload.kind, workload.kind.replace("_", " "))
    namespace = dict(workload.attributes).get("namespace")
    return f"{kind} in {namespace}" if namespace else kind


def activity_name(activity: Activity | str) -> str:
    """The activity's name for people."""
    return ACTIVITY[Activity(activity)].name


def activity_class(activity: Activity | str) -> str:
    """The CSS class that colours it."""
    return f"a-{Activity(activity).value}"
