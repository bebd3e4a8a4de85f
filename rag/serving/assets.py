"""The page and its files, as they should be served: read once, compressed once, and cached for as long as may be."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PAGE = "index.html"
ENTRY = "app.js"
"""The module that the page begins with."""
FOREVER = "public, max-age=31536000, immutable"
REVALIDATED = "no-cache"

# what browsers are given, and whether it is text; files of other kinds, such as *.d.ts, are there for editors
_KINDS: Mapping[str, tuple[str, bool]] = {
    ".css": ("text/css; charset=utf-8", True),
    ".html": ("text/html; charset=utf-8", True),
    ".ico": ("image/vnd.microsoft.icon", False),
    ".jpg": ("image/jpeg", False),
    ".js": ("text/javascript; charset=utf-8", True),
    ".json": ("application/json", True),
    ".png": ("image/png", False),
    ".svg": ("image/svg+xml; charset=utf-8", True),
    ".txt": ("text/plain; charset=utf-8", True),
    ".webmanifest": ("application/manifest+json", True),
    ".webp": ("image/webp", False),
    ".woff2": ("font/woff2", False),
}
_COMMENTED = {".css", ".js"}
_VERSION = re.compile(r"[0-9a-z]{1,64}")
_ZERO = re.compile(r"0(\.0*)?")
_ENTITY_TAG = re.compile(r'"[^"]*"')
# a statement, not the import() of a type in a comment
_IMPORT = re.compile(
    r"""(?:^|;)[ \t]*(?:import|export)\b(?:[^"'`();]{0,1000}?\bfrom)?\s*["']\./([\w.-]+\.js)["']""", re.MULTILINE
)
# what begins a line is no part of a string or of an expression: our modules have no texts of several lines
_COMMENT = re.compile(rb"^[ \t]*(?:/\*(?s:.*?)(?:\*/|\Z)|//.*)", re.MULTILINE)
_REFERENCE = re.compile(r"""(?<=["'])static/(?=[\w.-]+["'])""")


@dataclass(frozen=True, slots=True)
class _Form:
    """The bytes of a file as they go out, and a strong tag of just these."""

    body: bytes
    entity_tag: str


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, ready to send."""

    media_type: str
    plain: _Form
    zipped: _Form | None
    """None for what is no text."""

    def reply(self, request: Request, cache_control: str) -> Response:
        """The file in the form that the caller takes; 304 if that is what they have; no body for HEAD."""
        zipped = self.zipped if _takes_gzip(request) else None
        form = zipped or self.plain
        headers = {"Cache-Control": cache_control, "ETag": form.entity_tag, "Vary": "Accept-Encoding"}
        if _has(request, form.entity_tag):
            return Response(status_code=304, headers=headers)
        headers |= {"Content-Type": self.media_type, "Content-Length": str(len(form.body))}
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return Response(form.body if request.method != "HEAD" else b"", headers=headers)


@dataclass(frozen=True, slots=True)
class Assets:
    """The files of a folder as they were when it was read; no request opens any."""

    version: str
    """Another one as soon as a file has another name or content."""
    start: Asset
    files: Mapping[str, Asset]

    async def page(self, request: Request) -> Response:
        """GET /: the page, which names its files by the version of now."""
        return self.start.reply(request, REVALIDATED)

    async def file(self, request: Request) -> Response:
        """
        GET /static/{version}/{name} or /static/{name}: a file.

        It may be kept for ever under the version of now. Under another one, which a replica older or newer than this
        one gave to its page, or without any, it has to be asked for again.
        """
        version = request.path_params.get("version")
        asset = self.files.get(request.path_params["name"])
        if asset is None or (version is not None and not _VERSION.fullmatch(version)):
            raise HTTPException(404)
        return asset.reply(request, FOREVER if version == self.version else REVALIDATED)


def read_assets(folder: Path) -> Assets:
    """What browsers are given of the files in a folder, which are the page and what it loads; folders are left out."""
    contents = {path.name: _sent(path) for path in sorted(folder.iterdir()) if path.suffix in _KINDS and path.is_file()}
    version = _version_of(contents)
    page = contents.pop(PAGE).decode("utf-8")
    return Assets(
        version,
        make_asset(PAGE, _with_files(page, version, _modules_of(ENTRY, contents)).encode()),
        {name: make_asset(name, content) for name, content in contents.items()},
    )


def _sent(path: Path) -> bytes:
    content = path.read_bytes()
    return without_comments(content) if path.suffix in _COMMENTED else content


def _version_of(contents: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in contents.items():
        # hashes have one length, so no two folders run together into the same bytes
        digest.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


def _modules_of(entry: str, contents: Mapping[str, bytes]) -> list[str]:
    """The modules that one imports, directly or not: the nearest first, each once."""
    found = [entry]
    # the list grows meanwhile
    for name in found:
        imported = _IMPORT.findall(contents.get(name, b"").decode("utf-8"))
        found += [other for other in dict.fromkeys(imported) if other in contents and other not in found]
    return found[1:]


def _with_files(page: str, version: str, modules: list[str]) -> str:
    """The page with the versioned paths of its files, and all modules named, so that none waits for another."""
    links = "".join(f'  <link rel="modulepreload" href="static/{name}">\n' for name in modules)
    return _REFERENCE.sub(f"static/{version}/", page.replace("</head>", f"{links}</head>", 1))


def make_asset(name: str, content: bytes) -> Asset:
    """A file of a kind that browsers are given, compressed if it is text."""
    media_type, is_text = _KINDS[Path(name).suffix]
    zipped = gzip.compress(content, 9, mtime=0) if is_text else None
    return Asset(media_type, _form(content), _form(zipped) if zipped else None)


def without_comments(content: bytes) -> bytes:
    """Script or style without the comments that stand on lines of their own; every line keeps its number."""
    return _COMMENT.sub(lambda comment: b"\n" * comment[0].count(b"\n"), content)


def _form(body: bytes) -> _Form:
    return _Form(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _takes_gzip(request: Request) -> bool:
    """Whether the caller takes gzip: what is said of gzip itself counts, else what is said of any coding."""
    said: dict[str, bool] = {}
    for part in ",".join(request.headers.getlist("accept-encoding")).split(","):
        coding, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [value.removeprefix("q=") for value in parameters if value.startswith("q=")]
        said[coding] = not any(_ZERO.fullmatch(weight) for weight in weights)
    return said.get("gzip", said.get("x-gzip", said.get("*", False)))


def _has(request: Request, entity_tag: str) -> bool:
    """Whether the caller says that they have this very form; tags are compared weakly, as a proxy may weaken them."""
    held = ",".join(request.headers.getlist("if-none-match"))
    return held.strip() == "*" or entity_tag in _ENTITY_TAG.findall(held)
