"""``docs/rules/`` says what the rules say: every heading, threshold, need and source, and no page of a rule that is gone."""

import pytest

from advisor.model import HEADINGS, Rule
from advisor.rules import RULES
from docs.build import HERE, PAGES
from docs.rules_pages import FOLDER, INDEX, index_page, rule_page, summary_of


def test_the_folder_holds_the_pages_of_the_rules_and_no_others() -> None:
    there = {f"{FOLDER}/{path.name}" for path in (HERE / FOLDER).iterdir()}
    assert there == {name for name in PAGES if name.startswith(FOLDER)}, "run: make docs"
    assert len(there) == len(RULES) + 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_page_has_everything_the_rule_has(rule: Rule) -> None:
    text = rule_page(rule)
    assert text.startswith(f"# {rule.code} `{rule.id}`")
    places = [text.index(f"\n## {heading}\n") for heading in (*HEADINGS, "Needs", "Thresholds", "Sources")]
    assert places == sorted(places)
    for name in type(rule.limits).model_fields:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert len(row.split(" | ")) == 4
        assert len(row.split(" | ")[3]) > 10, f"{name} is not explained"
    for need in rule.needs:
        assert need in text
    for source in rule.sources:
        assert f"[{source.title}]({source.url})" in text
    assert "``" not in text


def test_the_index_names_every_rule_in_its_order() -> None:
    text = index_page()
    places = [text.index(f"[`{rule.id}`]({rule.id}.md)") for rule in RULES]
    assert places == sorted(places)
    assert INDEX in PAGES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_summary_is_one_sentence(rule: Rule) -> None:
    assert summary_of(rule).endswith(".")
    assert "\n\n" not in summary_of(rule)
