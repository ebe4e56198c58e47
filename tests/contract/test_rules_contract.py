"""Rules, their files, their documentation and their limits belong together."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from advisor import rules
from advisor.model import HEADINGS, Rule
from advisor.rules import RULES

FOLDER = Path(rules.__file__).parent
DESIGN_IDS = [
    "empty-gpu",
    "parked-model",
    "orphan-memory",
    "off-hours",
    "execution-idle",
    "memory-bound-decode",
    "small-batch",
    "too-many-replicas",
    "overload",
    "quantization-candidate",
    "kv-cache-precision",
    "kv-thrash",
    "kv-overprovisioned",
    "no-prefix-cache",
    "host-bound-serving",
    "input-bound",
    "pcie-bound",
    "gpu-imbalance",
    "over-sharded",
    "oversized-gpu",
    "shareable-gpu",
    "power-cap",
    "decode-clock",
    "throttled",
    "slow-clock",
    "unhealthy-gpu",
    "stuck-job",
    "tensor-cores-unused",
    "slow-attention",
    "speculative-decoding",
    "phase-split",
    "static-batching",
    "rent-or-buy",
    "shiftable-job",
]
CODES = [f"R{number:02d}" for number in (*range(1, 32), 34, 32, 33)]


def module_of(rule: Rule) -> ModuleType:
    module = getattr(rules, rule.id.replace("-", "_"))
    assert isinstance(module, ModuleType)
    return module


def test_the_tuple_and_the_folder_name_the_same_rules() -> None:
    files = {path.stem.replace("_", "-") for path in FOLDER.glob("*.py")} - {"--init--"}
    assert {rule.id for rule in RULES} == files
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_ids_and_codes_are_those_of_the_design() -> None:
    by_id = dict(zip(DESIGN_IDS, CODES, strict=True))
    assert {rule.id: rule.code for rule in RULES} == {rule.id: by_id[rule.id] for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_docstring_has_the_four_headings_in_order(rule: Rule) -> None:
    text = module_of(rule).__doc__ or ""
    headings = [line for line in text.splitlines() if re.fullmatch(r"[A-Z][A-Za-z ]+", line)]
    assert tuple(headings) == HEADINGS
    for before, after in zip(headings, [*headings[1:], None], strict=True):
        body = text.split(f"\n{before}\n", 1)[1]
        if after is not None:
            body = body.split(f"\n{after}\n", 1)[0]
        assert len(body.split()) >= 10, f"{before} says nothing"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_limit_is_bounded_and_explained(rule: Rule) -> None:
    fields = type(rule.limits).model_fields
    assert fields
    assert rule.limits.model_config["extra"] == "forbid"
    assert rule.limits.model_config["frozen"] is True
    explained = ""
    for name, field in reversed(fields.items()):
        explained = field.description or explained  # a pair of bounds shares the sentence below it
        assert explained, f"{name} is not explained"
        assert field.metadata or field.annotation is not None, f"{name} has no bound"
        assert field.default is not ..., f"{name} has no default"
    unbounded = [
        n for n, f in fields.items() if not f.metadata and "Gt(" not in repr(f) and "Ge(" not in repr(f)
    ]
    assert not unbounded


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_names_its_needs_and_sources(rule: Rule) -> None:
    assert rule.needs
    assert rule.sources
    assert rule.title[0].isupper()
    assert not rule.title.endswith(".")
