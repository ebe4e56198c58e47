"""Words for people, said once: activities, statuses, grades, ledgers. Order of activities is that of every stack and legend."""

from dataclasses import dataclass
from typing import Final

from core.activity import Activity
from core.finding import Effort, Finding, Grade, Status


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

EFFORT: Final[dict[Effort, str]] = {
    Effort.LOW: "effort low",
    Effort.MEDIUM: "effort medium",
    Effort.HIGH: "effort high",
}


TOGETHER: Final = {
    "empty-gpu": "Release {count} empty GPUs on {hosts}",
    "parked-model": "Unload the idle models from {count} GPUs on {hosts}",
}
"""Title of findings of one rule on neighbouring GPUs, said at once."""


def grade_word(finding: Finding) -> str:
    """How the figure was had, or that there is little data behind it."""
    return "little data yet" if finding.is_short_of_data else GRADE[finding.grade]


def activity_name(activity: Activity | str) -> str:
    """The activity's name for people."""
    return ACTIVITY[Activity(activity)].name


def activity_class(activity: Activity | str) -> str:
    """The CSS class that colours it."""
    return f"a-{Activity(activity).value}"
