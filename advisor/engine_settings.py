"""Switches and words among an engine's settings, whether it publishes them or its command line told them."""

from collections.abc import Mapping
from typing import Final

_ON: Final = frozenset({"true", "1", "on", "yes", "enabled"})
_OFF: Final = frozenset({"false", "0", "off", "no", "disabled"})
_NOTHING: Final = frozenset({"", "none", "null", "auto"})

SPECULATION: Final = ("speculative_method", "speculative_model", "num_speculative_tokens")
SPLIT_SERVING: Final = ("kv_connector", "kv_role", "disaggregation_mode")


def switch(settings: Mapping[str, str], name: str) -> bool | None:
    """True or False as the setting says; None where it is absent or says neither."""
    text = settings.get(name, "").strip().lower()
    if text in _ON:
        return True
    return False if text in _OFF else None


def word(settings: Mapping[str, str], *names: str) -> str | None:
    """The first of ``names`` that says something, in lower case; ``None`` and ``auto`` say nothing."""
    texts = (settings.get(name, "").strip().lower() for name in names)
    return next((text for text in texts if text not in _NOTHING), None)


def speculates(settings: Mapping[str, str]) -> bool:
    """It decodes speculatively already; ``0`` tokens is off."""
    return word(settings, *SPECULATION) not in (None, *_OFF)


def splits_phases(settings: Mapping[str, str]) -> bool:
    """It hands KV caches to other engines or takes them: prefill and decode run apart already."""
    return word(settings, *SPLIT_SERVING) not in (None, *_OFF)
