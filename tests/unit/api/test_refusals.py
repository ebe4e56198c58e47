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


def test_what_is_no_json_says_where_and_a_body_of_another_type_how_to_send_it() -> None:
    broken = {"type": "json_invalid", "loc": ("body", 7), "msg": "JSON decode error", "input": {}}
    assert (
        sentence({**broken, "ctx": {"error": "Expecting value"}}, "body", {"body"})
        == "body: no JSON at character 7 (expecting value): correct it"
    )
    form = {"type": "model_attributes_type", "loc": ("body",), "msg": "Input should be", "input": b"a=b"}
    assert sentence(form, "body", {"body"}).endswith("send it with Content-Type: application/json")


def test_a_field_is_named_once_and_by_its_public_name() -> None:
    named = {"type": "value_error", "loc": ("by",), "msg": "Value error, by is 'x': use host", "input": "x"}
    assert sentence(named) == "by is 'x': use host"
    path = {"type": "int_parsing", "loc": ("path", "id_"), "msg": "Input should be an integer", "input": "x"}
    assert sentence(path, "body", {"path"}) == "id is 'x': input should be an integer"
