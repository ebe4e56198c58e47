"""The same SVG as PNG for mail and one-file reports: colours resolved, a bundled font, no system fonts.

Without ``font_files`` the rasteriser drops every label without a word; a test counts the pixels of text.
"""

import re
from functools import cache
from pathlib import Path
from typing import Final

import resvg_py

STATIC: Final = Path(__file__).resolve().parent.parent / "templates" / "static"
FONT: Final = STATIC / "vendor" / "inter-5.3.0" / "inter-latin-400-normal.ttf"
FONT_FAMILY: Final = "Inter"
AXIS_LEFT_PX: Final = 46
"""Room for the labels that hang out of the frame's left side; CSS leaves the same on pages."""

HATCH: Final = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch-back" width="6" height="6"/><line class="hatch-line" x1="0" y1="0" x2="0" y2="6"/>'
    "</pattern></defs>"
)
"""The hatching of what is unknown; pages carry it once, in the base template."""

_TOKEN: Final = re.compile(r"--([\w-]+):\s*light-dark\(\s*([^,()]+)\s*,\s*([^,()]+)\s*\)")


@cache
def tokens(theme: str = "light") -> dict[str, str]:
    """Colours of ``gpuwise.css`` by token name, for ``light`` or ``dark``."""
    css = (STATIC / "gpuwise.css").read_text(encoding="utf-8")
    return {m[1]: m[2 if theme == "light" else 3].strip() for m in _TOKEN.finditer(css)}


@cache
def style_sheet(theme: str = "light") -> str:
    """``charts.css`` with every token replaced by its colour. Raises ``KeyError`` for a token without one."""
    colours = tokens(theme) | {"sans": FONT_FAMILY}
    css = (STATIC / "charts.css").read_text(encoding="utf-8")
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    return re.sub(r"var\(--([\w-]+)\)", lambda m: colours[m[1]], css)


def colour_of(key: str, theme: str = "light") -> str | None:
    """Fill of a chart class (``a-parked``) as a fixed colour; None for what is hatched."""
    found = re.search(rf"\.{re.escape(key)}\{{fill:(#\w+)\}}", style_sheet(theme))
    return found[1] if found else None


def height_of(svg: str) -> float:
    """Height of a chart in CSS pixels, from its outer element."""
    found = re.search(r'height="([\d.]+)"', svg)
    assert found is not None
    return float(found[1])


def to_png(
    svg: str, *, width: int = 560, theme: str = "light", scale: float = 2.0, background: str = ""
) -> bytes:
    """One chart as PNG, ``width`` CSS pixels wide, on ``background`` (empty: the panel's colour).

    Args:
        svg: what a function of ``api.charts*`` returned.
        width: of the whole picture, labels included.
        theme: ``light`` or ``dark``.
        scale: pixels per CSS pixel; 2 is sharp on today's screens.
    """
    left = AXIS_LEFT_PX if re.match(r'<svg class="chart axis"', svg) else 2
    height = height_of(svg) + 12
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}">'
        f'{HATCH}<svg x="{left}" y="6" width="{width - left - 4}" height="{height:g}" overflow="visible">{svg}</svg></svg>'
    )
    png: bytes = resvg_py.svg_to_bytes(
        svg_string=picture,
        background=background or tokens(theme)["panel"],
        skip_system_fonts=True,
        font_files=[str(FONT)],
        font_family=FONT_FAMILY,
        sans_serif_family=FONT_FAMILY,
        style_sheet=style_sheet(theme),
        zoom=scale,
    )
    return bytes(png)
