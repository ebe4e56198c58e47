"""Pages of the advisor's rules: one a rule and an index, made of the docstrings, thresholds, needs and sources in the code."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import cleandoc
from sys import modules
from typing import Final

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from advisor.model import HEADINGS, Rule
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
    summary, sections = _parts(rule)
    lines = [
        f"# {rule.code} `{rule.id}`: {rule.title}",
        "",
        f"Generated from `advisor/rules/{rule.id.replace('-', '_')}.py`. [All rules](README.md).",
        "",
        summary,
        "",
    ]
    for heading in HEADINGS:
        lines += [f"## {heading}", "", sections[heading], ""]
    lines += [
        "## Effort and risk",
        "",
        f"Usually {rule.effort} effort and {rule.risk} risk; a finding may say otherwise.",
        "",
        "## Needs",
        "",
        *(f"- {_need(name)}" for name in sorted(rule.needs)),
        "",
        "## Thresholds",
        "",
        "| threshold | default | allowed | meaning |",
        "|---|---|---|---|",
        *_limit_rows(type(rule.limits).model_fields),
        "",
        "## Sources",
        "",
        *(f"- [{source.title}]({source.url})" for source in rule.sources),
        "",
    ]
    return "\n".join(lines)


def summary_of(rule: Rule) -> str:
    """The first sentence of its documentation."""
    return _parts(rule)[0]


def _parts(rule: Rule) -> tuple[str, Mapping[str, str]]:
    """The opening of the module's docstring, and the text below each heading."""
    text = cleandoc(modules[f"advisor.rules.{rule.id.replace('-', '_')}"].__doc__ or "")
    opening, rest = text.split(f"\n{HEADINGS[0]}\n", 1)
    found: dict[str, str] = {}
    for heading, following in zip(HEADINGS, (*HEADINGS[1:], None), strict=True):
        body, rest = (rest, "") if following is None else rest.split(f"\n{following}\n", 1)
        found[heading] = _markdown(body)
    return _markdown(opening), found


def _markdown(text: str) -> str:
    """Without the indentation of a docstring, and with code as Markdown has it."""
    lines = [line.removeprefix("    ") for line in text.strip("\n").splitlines()]
    return "\n".join(lines).strip().replace("``", "`")


def _need(name: str) -> str:
    return f"[`{name}`](../metrics.md)" if name in _METRICS else name


def _limit_rows(fields: Mapping[str, FieldInfo]) -> Sequence[str]:
    """A row a threshold; a pair of bounds shares the sentence below it."""
    rows: list[str] = []
    meaning = ""
    for name, field in reversed(list(fields.items())):
        meaning = field.description or meaning
        default = "none" if field.default is None else f"`{_plain(field.default)}`"
        rows.append(f"| `{name}` | {default} | {_bounds(field)} | {_cell(_markdown(meaning))} |")
    return rows[::-1]


def _bounds(field: FieldInfo) -> str:
    """``> 0, ≤ 1``; empty where the type says all."""
    signs: list[str] = []
    for bound in field.metadata:
        if isinstance(bound, Gt):
            signs.append(f"> {bound.gt}")
        elif isinstance(bound, Ge):
            signs.append(f"≥ {bound.ge}")
        elif isinstance(bound, Lt):
            signs.append(f"< {bound.lt}")
        elif isinstance(bound, Le):
            signs.append(f"≤ {bound.le}")
    return ", ".join(signs)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
