"""The version of gpuwise, for those who cannot afford to ask the package metadata for it (it loads a mail parser)."""

from typing import Final

VERSION: Final = "0.1.0"
"""The same as in ``pyproject.toml``; a test compares them."""
