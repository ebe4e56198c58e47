"""Given values that are refused: the sentence, the value, text that shows as something else."""

import pytest
from pydantic import BaseModel, ValidationError

from api.refusals import sentence, shown
from api.resources.price_specs import parsed
from api.text import Named, Storable
from core.errors import UsageError


class Said(BaseModel):
    note: Storable = ""
    name: Named = ""
    count: int = 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"note": "a\x00"}, "body.note: holds a character that cannot be stored: remove it"),
        ({"note": "\u202eevil"}, "body.note: holds U+202E, which turns the direction of text: remove it"),
        ({"name": "a\nb"}, "body.name: holds U+000A, which cannot be seen: use printable characters"),
        ({"name": "a\u200bb"}, "body.name: holds U+200B, which cannot be seen: use printable characters"),
        ({"count": "GPU-X"}, "body.count is 'GPU-X': input should be a valid integer"),
    ],
)
def test_a_refusal_names_field_and_value(given: dict[str, str], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Said.model_validate(given)
    (error,) = refused.value.errors()
    assert sentence({**error, "loc": ("body", *error["loc"])}).startswith(says)
    assert not sentence({**error, "loc": ("body", *error["loc"])}, "it", {"body"}).startswith("body")


def test_lines_in_a_note_and_words_from_right_to_left_are_fine() -> None:
    said = Said(note="one\ntwo\t\u05d0", name="\u05d0\u05d1")
    assert (said.note, said.name) == ("one\ntwo\t\u05d0", "\u05d0\u05d1")


def test_a_long_value_is_cut() -> None:
    assert shown("a" * 10_240) == f"'{'a' * 59}… (10,242 characters)"
    assert shown(0.5) == "0.5"


@pytest.mark.parametrize("text", ["1_000", "\uff12.5", "=1+1", "1,5", "", ".", "1e", "9" * 41])
def test_an_amount_is_a_plain_decimal(text: str) -> None:
    with pytest.raises(UsageError, match=r"usd_per_gpu_hour: .* is no amount"):
        parsed({"scope_kind": "all", "usd_per_gpu_hour": text})
