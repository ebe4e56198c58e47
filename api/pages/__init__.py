"""One page, one file. A new page is a file here, a template, a test, and a line in ``api.app.PAGES``."""

from starlette.convertors import PathConvertor, register_url_convertor

from api.links import DOTS


class NameConvertor(PathConvertor):
    """What something is called, as the rest of an address: slashes, line breaks and dots and all, as ``api.links`` writes it."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """The name itself."""
        return value[:-1] if value.removesuffix("/") in DOTS else value


register_url_convertor("name", NameConvertor())
