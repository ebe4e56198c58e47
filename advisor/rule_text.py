"""What a rule's docstring says: the one text behind its page of the documentation and the page of its findings."""

from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from sys import modules

from advisor.model import HEADINGS, Rule


@dataclass(frozen=True, slots=True)
class RuleText:
    """The opening sentence, and the text below each heading; code stands in backticks."""

    summary: str
    sections: tuple[tuple[str, str], ...]

    def under(self, heading: str) -> str:
        """The text below one of ``HEADINGS``."""
        return dict(self.sections)[heading]


def text_of(rule: Rule) -> RuleText:
    """The docstring of a rule's module, taken apart."""
    return _taken_apart(rule.id)


@cache
def _taken_apart(rule_id: str) -> RuleText:
    text = cleandoc(modules[f"advisor.rules.{rule_id.replace('-', '_')}"].__doc__ or "")
    opening, rest = text.split(f"\n{HEADINGS[0]}\n", 1)
    found: list[tuple[str, str]] = []
    for heading, following in zip(HEADINGS, (*HEADINGS[1:], None), strict=True):
        body, rest = (rest, "") if following is None else rest.split(f"\n{following}\n", 1)
        found.append((heading, as_markdown(body)))
    return RuleText(as_markdown(opening), tuple(found))


def as_markdown(text: str) -> str:
    """Without the indentation of a docstring, and with code as Markdown has it."""
    lines = [line.removeprefix("    ") for line in text.strip("\n").splitlines()]
    return "\n".join(lines).strip().replace("``", "`")
