"""Messages for webhooks: Slack's JSON, in which no name can make a link, a mention or a block of its own."""

import json

from api.slack import Point, slack_json


def test_title_points_and_link_are_blocks_and_text() -> None:
    body = json.loads(
        slack_json("2 alerts", [Point("GPU 1 is lost", "It fell off.", "https://g/gpus/1")], url="https://g")
    )
    header, section, foot = body["blocks"]
    assert header["text"] == {"type": "plain_text", "text": "2 alerts"}
    assert section["text"]["text"] == "<https://g/gpus/1|GPU 1 is lost>\nIt fell off."
    assert foot["elements"][0]["text"] == "<https://g|Open gpuwise>"
    assert body["text"] == "2 alerts\n• GPU 1 is lost"


def test_names_from_outside_are_inert() -> None:
    name = "<!channel> & <https://evil.example|here>\u202e\x00"
    body = json.loads(slack_json(name, [Point(name, name), Point("t|x", url="https://g/a|b>c")], more=name))
    said = "&lt;!channel&gt; &amp; &lt;https://evil.example|here&gt;"
    assert body["text"] == f"{said}\n• {said}\n• t|x"
    assert body["blocks"][1]["text"]["text"] == f"*{said}*\n{said}"
    assert body["blocks"][2]["text"]["text"] == "<https://g/a%7Cb&gt;c|t/x>"


def test_long_names_and_many_points_stay_within_slacks_limits() -> None:
    body = json.loads(slack_json("&" * 10_000, [Point("&" * 10_000, "<" * 10_000)] * 100, url="https://g"))
    assert len(body["blocks"]) <= 50
    assert len(body["blocks"][0]["text"]["text"]) <= 150
    assert all(len(block["text"]["text"]) <= 3_000 for block in body["blocks"][1:-1])
    assert len(body["text"]) < 40_000
