"""What a rule is: identity, needs, thresholds, sources and one function from evidence to findings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from core.evidence import Evidence
from core.finding import Effort, Finding, NotEvaluated, Risk, Subject

HEADINGS: Final = ("What it finds", "Why it costs", "When it is wrong", "What to do")
"""Every rule's docstring has these, in this order: it is the rule's page of the documentation."""

STAGES: Final = ("stop", "schedule", "consolidate", "workload", "clocks", "price")
"""Order in which savings act on a GPU-hour (advisor-rules 7.2)."""


class Limits(BaseModel):
    """Thresholds of a rule: every one typed, bounded, explained and tunable; an unknown name is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a threshold or a physical claim comes from."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Counted(NotEvaluated):
    """One sentence for all subjects of a fleet that lack the same; made by ``counted``, added up over chunks.

    ``one`` is the sentence for one of them, ``many`` that for more, with ``{count}`` in it.
    """

    count: int = 0
    one: str = ""
    many: str = ""


def counted(rule_id: str, missing: tuple[str, ...], count: int, one: str, many: str) -> Counted:
    """What could not be judged of ``count`` subjects, at least one; arguments as of ``Counted``."""
    why = one if count == 1 else many.replace("{count}", str(count))
    return Counted(
        rule_id, Subject("fleet", "fleet", "the fleet"), missing, why, count=count, one=one, many=many
    )


Verdict = Finding | NotEvaluated
Evaluate = Callable[[Evidence, Any], Iterator[Verdict]]
Scope = Literal["gpu", "fleet"]
OfHost = Callable[[str, Sequence[Finding]], tuple[str, str] | None]
"""A host and what is said of each of its GPUs → title and sentence for all of them; None: they do not go together."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of waste or risk.

    Attributes:
        id: kebab-case noun of the failing state; the file's name with dashes.
        code: number in the advisor rules (``R07``).
        title: imperative, without a subject.
        needs: metrics (``core.metrics`` names) and facts without which it cannot judge.
        limits: thresholds in force unless a run brings its own.
        effort, risk: of acting on it, usually.
        sources: for its thresholds and physics.
        evaluate: ``(evidence, limits)`` → findings, and ``NotEvaluated`` for subjects it cannot judge.
            Limits are of the rule's own class; the engine sees to that.
        scope: how much it must see at once. ``gpu``: whole hosts with the engines on them, some 176 GPUs at a time.
            ``fleet``: everything, because it compares replicas, peers or models across hosts. A fleet is not read
            whole: there a rule decides by ``digest`` and ``parts`` and touches hours of its few candidates.
        of_host: words for a host of which it says the same of every GPU: one finding then; None: each GPU its own.
    """

    id: str
    code: str
    title: str
    needs: frozenset[str]
    limits: Limits
    effort: Effort
    risk: Risk
    sources: tuple[Source, ...]
    evaluate: Evaluate
    scope: Scope = "gpu"
    of_host: OfHost | None = None
