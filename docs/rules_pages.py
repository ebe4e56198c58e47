"""Pages of the advisor's rules: one a rule and an index, made of the docstrings, thresholds, needs and sources in the code."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from advisor.limits_book import thresholds_of
from advisor.model import Limits, Rule
from advisor.reversible import REVERSIBLE
from advisor.rule_text import as_markdown, text_of
from advisor.rules import RULES
from core.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS

FOLDER: Final = "rules"
INDEX: Final = f"{FOLDER}/README.md"
_METRICS: Final = frozenset(metric.name for metric in (*GPU_METRICS, *ENGINE_METRICS, *HOST_METRICS))


def pages() -> Mapping[str, Callable[[], str]]:
    """Every page by its name under ``docs/``."""
    own = {f"{FOLDER}/{rule.id}.md": partial(rule_page, rule) for rule in RULES}
    return {INDEX: index_page, **own}


def index_page() -> str:
    """All rules in one table."""
    lines = [
        "# Rules",
        "",
        "Generated from `advisor/rules/`. A rule looks at one kind of waste or risk. Where data are thin, absent or cannot tell,",
        "it says *not evaluated* and what is missing; a figure it cannot stand for is left out with the reason. Savings are in",
        "three ledgers that are never added up: cash (the bill falls), capacity (GPU-hours become free), energy.",
        "",
        "| rule | what it says | asks you to | effort | risk |",
        "|---|---|---|---|---|",
        *(
            f"| {rule.code} [`{rule.id}`]({rule.id}.md) | {_cell(summary_of(rule))} | {_cell(rule.title)} | {rule.effort} | {rule.risk} |"
            for rule in RULES
        ),
        "",
    ]
    return "\n".join(lines)


def rule_page(rule: Rule) -> str:
    """One rule: its four headings, thresholds, needs and sources."""
    text = text_of(rule)
    lines = [
        f"# {rule.code} `{rule.id}`: {rule.title}",
        "",
        f"Generated from `advisor/rules/{rule.id.replace('-', '_')}.py`. [All rules](README.md).",
        "",
        text.summary,
        "",
    ]
    for heading, body in text.sections:
        lines += [f"## {heading}", "", body, ""]
    lines += [
        "## Effort and risk",
        "",
        f"Usually {rule.effort} effort and {rule.risk} risk; a finding may say otherwise.",
        "",
        f"Can it be taken back? {REVERSIBLE[rule.id]}",
        "",
        "## Needs",
        "",
        *(f"- {_need(name)}" for name in sorted(rule.needs)),
        "",
        "## Thresholds",
        "",
        "| threshold | default | allowed | meaning |",
        "|---|---|---|---|",
        *_limit_rows(rule.limits),
        "",
        "## Sources",
        "",
        *(f"- [{source.title}]({source.url})" for source in rule.sources),
        "",
    ]
    return "\n".join(lines)


def summary_of(rule: Rule) -> str:
    """The first sentence of its documentation."""
    return text_of(rule).summary


def _need(name: str) -> str:
    return f"[`{name}`](../metrics.md)" if name in _METRICS else name


def _limit_rows(limits: Limits) -> Sequence[str]:
    """A row a threshold."""
    return [
        f"| `{one.name}` | {_default(one.default)} | {one.bounds} | {_cell(as_markdown(one.meaning))} |"
        for one in thresholds_of(limits)
    ]


def _default(value: float | None) -> str:
    if value is None:
        return "none"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
