"""Charts as pictures: the labels are really there, and the colours are those of the pages."""

import struct
import zlib

import pytest

from api.charts import FunnelBar, Layer, funnel, stacked_bars
from api.charts_png import FONT, colour_of, style_sheet, to_png, tokens
from api.words import ACTIVITY, activity_class
from core.activity import Activity


def pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and RGBA rows of a PNG as resvg writes it (8 bit RGBA, not interlaced)."""
    at, data, head = 8, b"", b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        head = body if kind == b"IHDR" else head
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", head[:10])
    assert (depth, colour) == (8, 6)
    raw, rows, last = zlib.decompress(data), [], bytearray(width * 4)
    for y in range(height):
        start = y * (width * 4 + 1)
        kind_, line = raw[start], bytearray(raw[start + 1 : start + 1 + width * 4])
        for i, value in enumerate(line):
            a, b = line[i - 4] if i >= 4 else 0, last[i]
            c = last[i - 4] if i >= 4 else 0
            p = a + b - c
            nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            add = (0, a, b, (a + b) // 2, nearest)[kind_]
            line[i] = (value + add) & 255
        rows.append(bytes(line))
        last = line
    return width, height, rows


def dark_pixels(png: bytes, *, left: int, right: int, top: int, bottom: int) -> int:
    _, _, rows = pixels(png)
    return sum(max(row[4 * x : 4 * x + 3]) < 160 for row in rows[top:bottom] for x in range(left, right))


def test_labels_do_not_vanish_in_the_picture() -> None:
    svg = stacked_bars(["1 Nov"], [Layer("a-empty", "empty", (2500.0,))], label="x", height=120)
    png = to_png(svg, width=300, scale=1)
    assert dark_pixels(png, left=0, right=44, top=0, bottom=120) > 40, "axis labels are missing"


def test_without_a_font_the_same_test_would_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr("api.charts_png.FONT", str(tmp_path) + "/none.ttf")
    svg = stacked_bars(["1 Nov"], [Layer("a-empty", "empty", (2500.0,))], label="x", height=120)
    assert dark_pixels(to_png(svg, width=300, scale=1), left=0, right=44, top=0, bottom=120) == 0


def test_the_funnel_prints_names_and_figures() -> None:
    png = to_png(funnel([FunnelBar("Total", 10.0, "10 GPU-h")], label="x"), width=300, scale=1)
    assert dark_pixels(png, left=0, right=60, top=4, bottom=22) > 20
    assert dark_pixels(png, left=230, right=300, top=4, bottom=22) > 20


def test_the_picture_has_the_colour_of_the_pages() -> None:
    svg = stacked_bars(["1"], [Layer("a-spinning", "stuck", (100.0,))], label="x", height=100)
    _, _, rows = pixels(to_png(svg, width=200, scale=1))
    red = bytes.fromhex(tokens()["a-spin"].removeprefix("#"))
    assert sum(row[4 * x : 4 * x + 3] == red for row in rows for x in range(200)) > 500


def test_every_activity_has_one_colour_of_its_own_in_both_themes() -> None:
    for theme in ("light", "dark"):
        colours = {activity: colour_of(activity_class(activity), theme) for activity in ACTIVITY}
        assert colours.pop(Activity.UNKNOWN) is None, "unknown is hatched"
        assert None not in colours.values()
        assert len(set(colours.values())) == len(colours)


def test_every_token_of_the_chart_sheet_has_a_colour() -> None:
    assert "var(" not in style_sheet("light")
    assert "var(" not in style_sheet("dark")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_on_every_ground(theme: str) -> None:
    t = tokens(theme)
    for ink in ("ink", "soft", "warn", "bad", "accent"):
        for ground in ("panel", "bg"):
            assert contrast(t[ink], t[ground]) >= 4.5, (theme, ink, ground)
    assert contrast(t["panel"], t["accent"]) >= 4.5, "text of the main button and the pill"
    assert contrast(t["warn"], t["note"]) >= 4.5
    assert contrast(t["soft"], t["track"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_are_visible_on_the_panel(theme: str) -> None:
    t = tokens(theme)
    for line in ("ink", "soft", "a-compute", "a-memory", "faint"):
        assert contrast(t[line], t["panel"]) >= 3.0, (theme, line)


def test_the_bundled_font_has_its_licence_beside_it() -> None:
    assert "SIL Open Font License" in (FONT.parent / "LICENSE").read_text(encoding="utf-8")
