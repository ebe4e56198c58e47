"""A bar of how well GPU time was used: held › active › effective, what nothing can tell hatched."""

from dataclasses import dataclass

from markupsafe import Markup

from api import formats
from api.charts_parts import share
from api.text import escape


@dataclass(frozen=True, slots=True)
class Use:
    """GPU-hours held, and of them active, effective, active but not to be judged; None: nothing could tell.

    ``unnamed_h``: of the held hours those whose activity has no name.
    """

    held_h: float
    active_h: float | None
    effective_h: float | None
    untold_h: float = 0.0
    unnamed_h: float = 0.0

    @property
    def text(self) -> str:
        """The bar in words."""
        parts = [f"{formats.gpu_hours(self.held_h)} held"]
        parts.append(
            "active not known" if self.active_h is None else f"{formats.short(self.active_h)} active"
        )
        if self.effective_h is not None:
            parts.append(f"{formats.short(self.effective_h)} effective")
        if self.untold_h > 0:
            parts.append(f"{formats.short(self.untold_h)} active that nothing can judge")
        if self.unnamed_h > 0:
            parts.append(f"{formats.short(self.unnamed_h)} of unknown activity")
        return ", ".join(parts)


def use_bar(use: Use, most_h: float | None = None) -> Markup:
    """The bar, as wide as its share of ``most_h`` held hours (default: all of the width)."""
    whole = most_h or use.held_h or 1.0
    text = escape(use.text)
    rects = ['<rect class="track" width="100%" height="9" rx="2"/>']

    def piece(key: str, from_h: float, to_h: float, height: float = 9) -> None:
        if to_h - from_h > 0:
            fill = ' fill="url(#hatch)"' if key == "a-unknown" else ""
            rects.append(
                f'<rect class="{key}"{fill} x="{share(from_h, whole)}" width="{share(min(to_h, whole) - from_h, whole)}" height="{height:g}"/>'
            )

    piece("f-0", 0.0, use.held_h)
    active = use.active_h or 0.0
    effective = use.effective_h or 0.0
    piece("f-1", 0.0, active)
    piece("a-unknown", effective, min(active, effective + use.untold_h))
    piece("f-3", 0.0, effective)
    if use.active_h is None:
        piece("a-unknown", 0.0, use.held_h)
    elif use.unnamed_h > 0:
        piece("a-unknown", active, min(use.held_h, active + use.unnamed_h))
    return Markup(  # noqa: S704 - numbers and escaped words only
        f'<svg class="meter use" role="img" aria-label="{text}" width="100%" height="9" overflow="visible"'
        f' xmlns="http://www.w3.org/2000/svg"><title>{text}</title>{"".join(rects)}</svg>'
    )
