"""Static files as they are served: kept for ever under their version, asked for again under any other."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from app import STATIC_DIR
from rag.serving.assets import ENTRY, PAGE, Assets, read_assets, without_comments
from rag.serving.envelope import Envelope
from rag.serving.problems import handle_http_exception

FOREVER = "public, max-age=31536000, immutable"
INDEX = """<!doctype html>
<html>
<head>
  <link rel="stylesheet" href="static/style.css">
  <script type="module" src='static/app.js'></script>
</head>
<body><p>See static/app.js or static/.</p></body>
</html>
"""
APP = """import { first } from "./first.js";
import "./second.js"; import third from './third.js'
/** @typedef {import("./typed.js").Type} Type */
/**
 * @import {Type} from "./typed.js"
 */
// import { gone } from "./commented.js";
const late = () => import("./late.js");
const text = "import './text.js'";
"""
FILES = {
    PAGE: INDEX,
    "app.js": APP,
    "first.js": 'import {\n  one,\n  two as other, // of two\n} from "./fourth.js";\nexport * from "./app.js";\n',
    "second.js": 'export { a } from "./first.js";\nimport "./absent.js";\nimport "https://elsewhere.invalid/x.js";\n',
    "third.js": 'import*as all from"./fourth.js";\nexport function from(a) { return a; }\n',
    "fourth.js": "export const one = 1, two = 2, ñ = 3;\n",
    "typed.js": "",
    "commented.js": "",
    "late.js": "",
    "text.js": "",
    "alone.js": "",
    "style.css": "p { color: red; }\n" * 50,
    "icon.svg": "<svg/>",
    "types.d.ts": "export type Type = string;\n",
    "notes.md": "# Notes\n",
}
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(100)
IMPORTED = ["first.js", "second.js", "third.js", "fourth.js"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files, and beside it a file that is nobody's business."""
    static = tmp_path / "static"
    static.mkdir()
    for name, content in FILES.items():
        (static / name).write_text(content, "utf-8")
    (static / "dot.png").write_bytes(PIXEL)
    (static / "inner").mkdir()
    (static / "inner" / "deep.js").write_text("export {};\n", "utf-8")
    (tmp_path / "secret.js").write_text("secret", "utf-8")
    return static


@pytest.fixture
def assets(folder: Path) -> Assets:
    """The same folder, read."""
    return read_assets(folder)


def get(
    assets: Assets, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
) -> tuple[httpx.Response, bytes]:
    """The reply and its bytes as they went out; nothing is accepted but what the headers say."""
    app = Starlette(
        routes=[
            Route("/", assets.page),
            Route("/static/{name}", assets.file),
            Route("/static/{version}/{name}", assets.file),
        ],
        exception_handlers={HTTPException: handle_http_exception},
    )

    app.router.redirect_slashes = False

    whole = Envelope(app, lambda route, status, seconds: None)

    async def call() -> tuple[httpx.Response, bytes]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(whole), base_url="http://test") as caller:
            del caller.headers["accept-encoding"]
            async with caller.stream(method, path, headers=headers) as response:
                return response, b"".join([chunk async for chunk in response.aiter_raw()])

    return asyncio.run(call())


# versions


def test_the_page_names_its_files_by_version(assets: Assets) -> None:
    """References of the page's tags lead to the versioned path; words of its text stay as they are."""
    response, body = get(assets, "/")
    page, path = body.decode(), f"static/{assets.version}"
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert f'href="{path}/style.css"' in page
    assert f"src='{path}/app.js'" in page
    assert "<p>See static/app.js or static/.</p>" in page


def test_the_page_preloads_all_modules(assets: Assets) -> None:
    """Each module that the entry imports by a statement, directly or not, is preloaded once, before the head ends."""
    head, _, _ = get(assets, "/")[1].decode().partition("</head>")
    preloaded = re.findall(rf'<link rel="modulepreload" href="static/{assets.version}/(.*?)">', head)
    assert preloaded == IMPORTED
    assert head.count("modulepreload") == len(IMPORTED)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".js", ".css", ".svg"))])
def test_a_version_is_kept_for_ever_while_it_is_the_one_of_now(assets: Assets, name: str) -> None:
    """Under the version of now a file may be kept for ever; under another or none the same bytes are asked for anew."""
    current, body = get(assets, f"/static/{assets.version}/{name}")
    assert (current.status_code, body) == (200, without_comments(FILES[name].encode()))
    assert current.headers["cache-control"] == FOREVER
    for path in (f"/static/{name}", f"/static/0123456789ab/{name}"):
        other, same = get(assets, path)
        assert (other.status_code, same) == (200, body)
        assert other.headers["cache-control"] == "no-cache"
        assert other.headers["etag"] == current.headers["etag"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda folder: (folder / "late.js").write_text("1", "utf-8"),
    "page": lambda folder: (folder / PAGE).write_text(INDEX + " ", "utf-8"),
    "name": lambda folder: (folder / "late.js").rename(folder / "later.js"),
    "swap": lambda folder: (folder / "first.js").rename(folder / "alone.js"),
    "more": lambda folder: (folder / "new.js").write_text("", "utf-8"),
    "less": lambda folder: (folder / "late.js").unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_makes_another_version(folder: Path, assets: Assets, change: Callable[[Path], object]) -> None:
    """Another name or content of any file is another version, and another tag of the page."""
    change(folder)
    changed = read_assets(folder)
    assert changed.version != assets.version
    assert get(changed, "/")[0].headers["etag"] != get(assets, "/")[0].headers["etag"]


def test_the_same_files_give_the_same_bytes(folder: Path, assets: Assets, tmp_path: Path) -> None:
    """A copy of the folder made later, somewhere else, with another file for editors, is served in the same bytes."""
    other = tmp_path / "other"
    other.mkdir()
    for path in sorted(folder.iterdir(), reverse=True):
        if path.is_file():
            shutil.copyfile(path, other / path.name)
    (other / "types.d.ts").write_text("export type Other = number;\n", "utf-8")
    assert read_assets(other) == assets


def test_files_are_read_once(folder: Path, assets: Assets) -> None:
    """What becomes of the folder after the start changes nothing that is served."""
    shutil.rmtree(folder)
    assert get(assets, "/static/app.js")[1] == without_comments(APP.encode())
    assert get(assets, "/")[0].status_code == 200


# forms


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("br, gzip;q=0.5", True),
        ("deflate,gzip ;q=1.0", True),
        ("*", True),
        ("*;q=0.1", True),
        ("br", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("gzip;Q=0", False),
        ("*;q=0", False),
        ("*;q=0, gzip;q=0.001", True),
        ("gzippy", False),
    ],
)
def test_text_is_compressed_for_those_who_take_it(assets: Assets, accepted: str | None, zipped: bool) -> None:
    """Page and text files come in gzip where Accept-Encoding allows it, plain elsewhere, and always say what varies."""
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    for path in ("/", "/static/style.css", f"/static/{assets.version}/style.css"):
        plain = get(assets, path)[1]
        response, body = get(assets, path, headers)
        assert response.headers["vary"] == "Accept-Encoding"
        assert response.headers["content-length"] == str(len(body))
        assert response.headers.get("content-encoding") == ("gzip" if zipped else None)
        assert (gzip.decompress(body) if zipped else body) == plain
        assert (len(body) < len(plain)) == zipped


def test_images_are_not_compressed(assets: Assets) -> None:
    """What is no text comes as it is, whatever is accepted."""
    response, body = get(assets, "/static/dot.png", {"Accept-Encoding": "gzip"})
    assert body == PIXEL
    assert "content-encoding" not in response.headers
    assert response.headers["content-type"] == "image/png"


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/dot.png", "{version}"])
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_what_one_has_is_not_sent_again(assets: Assets, path: str, accepted: str) -> None:
    """If-None-Match with the tag of that form is 304 without a body and with the headers that caches need."""
    path = path.format(version=f"/static/{assets.version}/app.js")
    full, _ = get(assets, path, {"Accept-Encoding": accepted})
    tag = full.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    for held in (tag, f"W/{tag}", f'"a,b", {tag},"c"', "*"):
        response, body = get(assets, path, {"Accept-Encoding": accepted, "If-None-Match": held})
        assert (response.status_code, body) == (304, b"")
        for name in ("etag", "cache-control", "vary"):
            assert response.headers[name] == full.headers[name]
        assert "content-type" not in response.headers
        assert "content-encoding" not in response.headers
    for held in ('"another"', tag.strip('"'), f'"x{tag[1:]}', ""):
        assert get(assets, path, {"Accept-Encoding": accepted, "If-None-Match": held})[0].status_code == 200


def test_each_form_has_a_tag_of_its_own(assets: Assets) -> None:
    """The tag of the compressed form is not that of the plain one, and does not stand for it."""
    plain, zipped = (get(assets, "/static/app.js", {"Accept-Encoding": of})[0] for of in ("identity", "gzip"))
    assert plain.headers["etag"] != zipped.headers["etag"]
    held = {"If-None-Match": zipped.headers["etag"], "Accept-Encoding": "identity"}
    assert get(assets, "/static/app.js", held)[0].status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/dot.png"])
@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_head_tells_all_but_the_body(assets: Assets, path: str, accepted: str) -> None:
    """HEAD has the status and all headers of GET, the length too, and no body; what one has is 304 as well."""
    headers = {"Accept-Encoding": accepted}
    full, _ = get(assets, path, headers)
    head, body = get(assets, path, headers, method="HEAD")
    assert (head.status_code, body) == (200, b"")
    assert {**head.headers, "x-request-id": ""} == {**full.headers, "x-request-id": ""}
    held = {**headers, "If-None-Match": full.headers["etag"]}
    assert get(assets, path, held, method="HEAD")[0].status_code == 304


# what is not there


@pytest.mark.parametrize(
    "name",
    [
        "none.js",
        "APP.JS",
        PAGE,
        "types.d.ts",
        "notes.md",
        "inner",
        "deep.js",
        "inner/deep.js",
        "secret.js",
        "..%2fsecret.js",
        "%2e%2e/secret.js",
        "%2e%2e/app.js",
        "%2e/app.js",
        "..%5csecret.js",
        "%2fetc%2fpasswd",
        "app.js%00",
        "app.js%0a",
        "app.js/",
        "app.js/app.js",
        "VERSION/app.js",
        "a/b/app.js",
        f"{'a' * 65}/app.js",
    ],
)
def test_nothing_else_is_there(assets: Assets, name: str) -> None:
    """Other names, files for editors, folders, and paths that would lead out of the folder are the same 404 problem."""
    for path in (f"/static/{name}", f"/static/{assets.version}/{name}"):
        response, body = get(assets, path, {"If-None-Match": "*", "Accept-Encoding": "gzip"})
        assert response.status_code == 404
        assert response.headers["content-type"] == "application/problem+json"
        assert response.headers["cache-control"] == "no-store"
        assert json.loads(body)["type"] == "urn:fichero:problem:not-found"
        assert b"app.js" not in body


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/none.js"])
def test_files_cannot_be_changed(assets: Assets, path: str) -> None:
    """Any other method is 405, and OPTIONS names those there are."""
    assert get(assets, path, method="POST")[0].status_code == 405
    assert get(assets, path, method="OPTIONS")[0].headers["allow"] in ("GET, HEAD", "HEAD, GET")


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ("/**\n * a\n */\nb();\n", "\n\n\nb();\n"),
        ("a();\n  /** b */\n  c();\n", "a();\n\n  c();\n"),
        ("  // a\nb();\n", "\nb();\n"),
        ("/* a */ b();\n", " b();\n"),
        ("a(); // b\n", "a(); // b\n"),
        ('a("/* b */");\nc = "// d";\n', 'a("/* b */");\nc = "// d";\n'),
        ("a = b\n  / c;\n", "a = b\n  / c;\n"),
        ("/* a **/\nb();\n/**/\n", "\nb();\n\n"),
        ("/* a\n// b */\nc();\n", "\n\nc();\n"),
        ("// /* a\nb();\n// */\n", "\nb();\n\n"),
    ],
)
def test_comments_stay_here(content: str, sent: str) -> None:
    """Comments that begin a line are not sent, and every line keeps its number; whatever else has such signs stays."""
    assert without_comments(content.encode()) == sent.encode()


# the real page

MOST_BYTES = 40_000
"""Of all scripts and styles, as they travel."""


@pytest.fixture(scope="module")
def real() -> Assets:
    """The page of this project."""
    return read_assets(STATIC_DIR)


def test_every_file_of_the_page_is_served_as_it_is(real: Assets) -> None:
    """All files of static/ but the page and those for editors are there, with a type, a charset and all headers."""
    names = {path.name for path in STATIC_DIR.iterdir() if path.is_file() and not path.name.endswith(".d.ts")} - {PAGE}
    assert set(real.files) == names
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for name in names:
        response, body = get(real, f"/static/{real.version}/{name}")
        content = (STATIC_DIR / name).read_bytes()
        assert body == (without_comments(content) if name.endswith((".js", ".css")) else content)
        kind = kinds.get(Path(name).suffix)
        assert kind is None or response.headers["content-type"] == f"{kind}; charset=utf-8"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "require-trusted-types-for 'script'; trusted-types 'none'" in response.headers["content-security-policy"]


def test_all_that_the_page_names_is_there(real: Assets) -> None:
    """Each address in the page is a file that may be kept for ever, and each module of the page is named."""
    page = get(real, "/")[1].decode()
    addresses = re.findall(r'(?:href|src)="([^#].*?)"', page)
    assert len(set(addresses)) == len(addresses) > 3
    for address in addresses:
        assert get(real, f"/{address}")[0].headers["cache-control"] == FOREVER
    named = {address.rpartition("/")[2] for address in addresses}
    imported = re.compile(r'^(?:import\b|\} from|export\b.* from)[^(\n]*"\./(.*?)"', re.MULTILINE)
    for name in named:
        if name.endswith(".js"):
            assert set(imported.findall((STATIC_DIR / name).read_text("utf-8"))) <= named
    assert ENTRY in named


def test_scripts_and_styles_are_small(real: Assets) -> None:
    """All JavaScript and CSS of the page is at most 40 KB, file by file as it travels, compressed."""
    names = [name for name in real.files if name.endswith((".js", ".css"))]
    sent = [get(real, f"/static/{real.version}/{name}", {"accept-encoding": "gzip"})[0] for name in names]
    assert all(response.headers["content-encoding"] == "gzip" for response in sent)
    assert sum(int(response.headers["content-length"]) for response in sent) <= MOST_BYTES


def test_no_text_in_a_script_has_several_lines(real: Assets) -> None:
    """No template string goes over a line's end, as what begins its second line might look like a comment."""
    for path in STATIC_DIR.glob("*.js"):
        bare = without_comments(path.read_bytes()).decode()
        # signs of code in strings and expressions are pairs on one line, or escaped
        odd = [line for line in bare.splitlines() if len(re.findall(r"(?<!\\)`", line)) % 2 and "[`" not in line]
        assert [line for line in odd if not re.search(r"""["'/][^"'/]*`[^"'/]*["'/]""", line)] == [], path.name
