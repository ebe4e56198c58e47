"""What the people of the demo did with its advice: steps at the times at which they would have been taken.

One of them changed the fleet (``agent.sources.simulator.cast``: a notebook's GPU went to the queue), so that its saving
can be measured; the others are decisions that every list has.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from agent.sources.simulator.cast import HANDED_ON_H
from api.resources.recommendation_actions import APPLIES, Act, act
from core.clock import iso
from core.finding import Finding
from core.units import DAY_MS, HOUR_MS
from store.queries import recommendations


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the finding of ``rule`` whose subject is called ``of``.

    Attributes:
        ago_h: hours before the anchor. until_d: days after the anchor to which it is snoozed.
    """

    rule: str
    of: str
    act: Act
    ago_h: float
    who: str
    note: str = ""
    until_d: int | None = None

    def fits(self, finding: Finding) -> bool:
        """Whether it is about this one."""
        return (finding.rule_id, finding.subject.label) == (self.rule, self.of)


THEN: Final = (
    Step("parked-model", "GPU 1 on lab-01", Act.CLAIM, HANDED_ON_H + 17, "tomas"),
    Step(
        "parked-model",
        "GPU 1 on lab-01",
        Act.DONE,
        HANDED_ON_H - 1,
        "tomas",
        "The notebook starts on demand now, 10 to 12 on weekdays; the queue has the GPU for the rest (embed_archive.py).",
    ),
    Step(
        "speculative-decoding",
        "Llama-2-13b-chat-hf on chat-01:8000",
        Act.DISMISS,
        HANDED_ON_H - 6,
        "nadia",
        "Not worth it: there is no draft model for it, and it is replaced in spring.",
    ),
    Step(
        "parked-model",
        "GPU 7 on lab-01",
        Act.DONE,
        121.0,
        "lena",
        "whisper-worker starts at 06:00 and stops at 22:00 by a timer.",
    ),
)
"""On what the first run found."""
LATELY: Final = (
    Step(
        "oversized-gpu",
        "Qwen3-14B on chat-01:8002",
        Act.SNOOZE,
        52.0,
        "ines",
        "Planned work: the PCIe node arrives in three weeks.",
        until_d=21,
    ),
    Step("too-many-replicas", "Qwen3-14B on chat-01:8003", Act.CLAIM, 27.0, "ines"),
)
"""On what a run of this week found."""
RUNS: Final = ((HANDED_ON_H + 40, THEN), (60, LATELY))
"""Hours before the anchor at which the rules ran, and the steps that people took on what they said."""


def take(session: Session, steps: tuple[Step, ...], anchor_ms: int) -> None:
    """Take every step that there is a finding for, if it still applies."""
    found = recommendations.listing(session, brief=True)
    for step in steps:
        for one in found:
            now = recommendations.get(session, one.id)
            if not step.fits(one.finding) or now is None or now.status not in APPLIES[step.act]:
                continue
            until = None if step.until_d is None else iso(anchor_ms + step.until_d * DAY_MS)
            at_ms = anchor_ms - int(step.ago_h * HOUR_MS)
            act(session, one.id, step.act, at_ms, note=step.note, until=until, who=step.who)
