"""Static files: kept for a year when their address carries their content's mark, else asked for again."""

from os import PathLike, stat_result

from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope


class MarkedFiles(StaticFiles):
    """Files under ``/static``; ``?v=`` is the mark that ``api.templating.static_url`` puts on every address."""

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """A file with its ETag, and how long it may be kept."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        marked = "v" in QueryParams(scope.get("query_string", b""))
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if marked else "no-cache"
        return response
