"""What a card file may hold, and what is said of one that cannot be read."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.cards import CardFolder, read_cards, slug
from rag.cards.body import clean_line, normalise_text, remove_comments
from rag.cards.front_matter import LIMIT_CHARS, FrontMatterInvalid, parse_front_matter, split_front_matter
from rag.cards.reading import CARD_LIMIT_BYTES
from rag.records import Card
from tests.conftest import CASES_DIR

BOUNDED = settings(
    max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def read_files(folder: Path, files: Mapping[str, str | bytes], *, plain_markdown: bool = False) -> CardFolder:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_cards(folder, plain_markdown=plain_markdown)


def read_one(folder: Path, content: str | bytes) -> Card:
    found = read_files(folder, {"una.md": content})
    assert found.faults == ()
    return found.cards[0]


def with_lines(*lines: str, body: str = "Texto.") -> str:
    """A file with a title and these lines of front matter from line 3 on."""
    return "\n".join(["---", "title: Una", *lines, "---", "", body, ""])


# one row a fault: id, the file, the line it is named with, and a part of what is said
FAULTS: list[tuple[str, str | bytes, int, str]] = [
    ("no front matter", "Solo texto.\n", 1, "no front matter"),
    ("empty file", "", 1, "no front matter"),
    ("four dashes", "----\nhola\n----\n", 1, "no front matter"),
    ("blank line before it", "\n---\ntitle: Una\n---\n", 1, "no front matter"),
    ("not closed", "---\ntitle: Una\nTexto.\n", 1, "no closing line"),
    ("no keys", "---\nsolo texto\n---\n", 2, "holds no keys"),
    ("a list", "---\n- uno\n- dos\n---\n", 2, "holds no keys"),
    ("no title", "---\nid: una\n---\nTexto.\n", 1, "there is no title"),
    ("empty front matter", "---\n---\nTexto.\n", 1, "there is no title"),
    ("null title", "---\nid: una\ntitle:\n---\nTexto.\n", 3, "there is no title"),
    ("blank title", '---\nid: una\ntitle: "  "\n---\nTexto.\n', 3, "there is no title"),
    ("title is a list", "---\ntitle: [uno, dos]\n---\n", 2, "title is a list"),
    ("colon in a value", "---\nid: una\ntitle: Dosis: cada 8 horas\n---\n", 3, 'title: "Dosis: cada 8 horas"'),
    ("open bracket", with_lines("topics: [uno"), 4, "not YAML"),
    ("open quote", with_lines('source: "uno'), 3, "not YAML"),
    ("tab as indentation", with_lines("topics:", "\t- uno"), 4, "not YAML"),
    ("a second document", with_lines("--- {acl: [staff]}"), 3, ""),
    ("control character", with_lines("license: CC0-1.0", "source: a\x07b"), 4, ""),
    ("an alias", with_lines("source: *otra"), 3, "anchors and aliases"),
    ("an anchor", with_lines("source: &otra texto"), 3, "anchors and aliases"),
    ("an anchor in a list", with_lines("acl: [&a staff]"), 3, "anchors and aliases"),
    ("a merge", with_lines("<<: *otra"), 3, "anchors and aliases"),
    ("a tag", with_lines("source: !!int 3"), 3, "the tag"),
    ("an object tag", with_lines("source: !!python/name:os.system"), 3, "the tag"),
    ("a key twice", with_lines("acl: [staff]", "acl: [public]"), 4, "first on line 3"),
    ("a null key", with_lines("~: valor"), 3, "a key is empty"),
    ("no key", with_lines(": valor"), 3, "not YAML"),
    ("a nested mapping", with_lines("source:", "  url: x"), 3, "only text and lists"),
    ("a nested list", with_lines("topics: [uno, [dos]]"), 3, "only text and lists"),
    ("an empty item", with_lines("topics: [uno, ~]"), 3, "an empty item"),
    ("too many questions", with_lines(f"questions: [{', '.join(f'a{n}' for n in range(31))}]"), 3, "31 questions"),
    ("a question as long as a page", with_lines(f"questions: [{'a' * 301}]"), 3, "301 characters"),
    ("too long", with_lines(f"source: {'a' * LIMIT_CHARS}"), 2, f"at most {LIMIT_CHARS}"),
    ("too many bytes", b"---\ntitle: Una\n---\n" + b"a" * CARD_LIMIT_BYTES, 1, "1,048,576"),
    ("not UTF-8", "---\ntitle: Una\n---\n\nMedicación\n".encode("latin-1"), 5, "byte 0xf3 is not UTF-8"),
    ("UTF-16", "---\ntitle: Una\n---\n".encode("utf-16"), 1, "is not UTF-8"),
    ("NUL", "---\ntitle: Una\n---\n\nuno\0dos\n", 5, "NUL"),
    ("id with a separator", with_lines('id: "card::1"'), 3, "'card::1'"),
    ("id with a slash", with_lines("id: card/barra"), 3, "'card/barra'"),
    ("id with a space", with_lines("id: card con espacio"), 3, "'card con espacio'"),
    ("id that climbs", with_lines("id: ../card"), 3, "'../card'"),
    ("id in capitals", with_lines("id: Card"), 3, "'Card'"),
    ("id with an accent", with_lines("id: dosificación"), 3, "'dosificación'"),
    ("id too long", with_lines(f"id: {'a' * 81}"), 3, "at most 80"),
    ("id like a file", with_lines("id: una.md"), 3, "not ending in .md"),
    ("unknown language", with_lines("language: fr"), 3, "'fr'"),
    ("no date", with_lines("accessed_at: ayer"), 3, "'ayer'"),
    ("an impossible date", with_lines("accessed_at: 2026-02-30"), 3, "YYYY-MM-DD"),
    ("a compact date", with_lines("accessed_at: 20261130"), 3, "YYYY-MM-DD"),
    ("a date and time", with_lines("accessed_at: 2026-11-30T10:00"), 3, "YYYY-MM-DD"),
    ("a week date", with_lines("accessed_at: 2026-W48-1"), 3, "YYYY-MM-DD"),
    ("acl is null", with_lines("acl:"), 3, "acl names no group"),
    ("acl is empty", with_lines("acl: []"), 3, "acl names no group"),
    ("acl is blank", with_lines('acl: [" "]'), 3, "acl names no group"),
    ("a group with a space", with_lines("acl: [todo el mundo]"), 3, "'todo el mundo'"),
    ("a group in capitals", with_lines("acl: [Staff]"), 3, "'Staff'"),
    ("acls", with_lines("acls: [staff]"), 3, "write 'acl'"),
    ("ACL", with_lines("ACL: [staff]"), 3, "write 'acl'"),
    ("acl transposed", with_lines("alc: [staff]"), 3, "write 'acl'"),
    ("acl transposed at the front", with_lines("cal: [staff]"), 3, "write 'acl'"),
    ("acl with a letter missing", with_lines("al: [staff]"), 3, "write 'acl'"),
    ("titel", with_lines("titel: Otra"), 3, "write 'title'"),
    ("topic", with_lines("topic: uno"), 3, "write 'topics'"),
    ("accesed_at", with_lines("accesed_at: 2026-11-30"), 3, "write 'accessed_at'"),
]


@pytest.mark.parametrize(
    ("content", "line", "part"), [row[1:] for row in FAULTS], ids=[row[0].replace(" ", "-") for row in FAULTS]
)
def test_a_fault_is_named_with_file_and_line(tmp_path: Path, content: str | bytes, line: int, part: str) -> None:
    """A file that cannot be read gives no card, and what is said names the file, the line and the remedy."""
    found = read_files(tmp_path, {"carpeta/mala.md": content})
    assert list(found.cards) == []
    assert {(fault.file, fault.line) for fault in found.faults} == {("carpeta/mala.md", line)}
    assert part in found.faults[0].message
    assert str(found.faults[0]).startswith(f"carpeta/mala.md:{line}: ")
    assert "\n" not in str(found.faults[0])


def test_every_fault_of_every_file_is_listed(tmp_path: Path) -> None:
    """Nothing stops at the first fault: all of them come back, in order of file and line, beside the good cards."""
    found = read_files(
        tmp_path,
        {
            "b.md": "---\nid: B\nlanguage: fr\nacl: []\n---\nTexto.\n",
            "a.md": "---\ntitle: A\nacls: [staff]\naccessed_at: ayer\n---\nTexto.\n",
            "buena.md": with_lines(),
            "c.md": "sin portada",
        },
    )
    places = [(fault.file, fault.line) for fault in found.faults]
    assert places == [("a.md", 3), ("a.md", 4), ("b.md", 1), ("b.md", 2), ("b.md", 3), ("b.md", 4), ("c.md", 1)]
    assert [card.card_id for card in found.cards] == ["buena"]
    assert found.file_count == 4


@pytest.mark.parametrize(
    "typed", ["007", "no", "12:30", "1.10", "0x1F", "1e3", "true", "2026-11-30", "on", "=", "NULL"]
)
def test_values_stay_as_typed(tmp_path: Path, typed: str) -> None:
    """Nothing is turned into a number, a date, a time or a boolean, alone or in a list."""
    card = read_one(tmp_path, f"---\ntitle: {typed}\nsource: {typed}\ntopics: [{typed}, uno]\n---\nTexto.\n")
    assert (card.title, card.source, card.topics) == (typed, typed, (typed, "uno"))


@pytest.mark.parametrize("written", ["", "~", "null"], ids=["nothing", "tilde", "null"])
@pytest.mark.parametrize("key", ["id", "language", "topics", "questions", "license", "source", "accessed_at"])
def test_an_optional_key_without_a_value_counts_as_absent(tmp_path: Path, key: str, written: str) -> None:
    """An empty or null optional key gives what leaving it out gives."""
    assert read_one(tmp_path / "a", with_lines(f"{key}: {written}")) == read_one(tmp_path / "b", with_lines())


def test_quoted_null_is_a_word(tmp_path: Path) -> None:
    """In quotes, null and ~ are text."""
    card = read_one(tmp_path, with_lines('license: "null"', "source: '~'"))
    assert (card.license, card.source) == ("null", "~")


def test_defaults(tmp_path: Path) -> None:
    """A card that only has a title is Spanish, public, and named after its file."""
    assert read_one(tmp_path, with_lines()) == Card(
        card_id="una",
        title="Una",
        text="Texto.",
        language="es",
        topics=(),
        license=None,
        source=None,
        accessed_at=None,
        acl=("public",),
    )


def test_every_key_is_read(tmp_path: Path) -> None:
    """Each known key ends in its field; groups are sorted, and neither groups nor topics repeat."""
    card = read_one(
        tmp_path,
        with_lines(
            "id: otra.id_1-x",
            "language: en",
            "topics: [b, a, b]",
            "license: CC0-1.0",
            "source: https://ejemplo.invalid",
            "accessed_at: 2026-11-30",
            "acl: [staff, nurses, staff]",
            "questions: [Who is it?, Who is it?, '¿Quién?']",
        ),
    )
    assert card == Card(
        card_id="otra.id_1-x",
        title="Una",
        text="Texto.",
        language="en",
        topics=("b", "a"),
        license="CC0-1.0",
        source="https://ejemplo.invalid",
        accessed_at="2026-11-30",
        acl=("nurses", "staff"),
        questions=("Who is it?", "¿Quién?"),
    )


def test_a_single_question_may_have_commas(tmp_path: Path) -> None:
    """A text where a list could stand is one question, commas and all."""
    assert read_one(tmp_path, with_lines("questions: Si me mareo, ¿qué hago?")).questions == (
        "Si me mareo, ¿qué hago?",
    )


@pytest.mark.parametrize("written", ["[staff, nurses]", "staff, nurses", "\n- staff\n- nurses"])
def test_a_list_may_be_written_in_three_ways(tmp_path: Path, written: str) -> None:
    """A flow list, a block list and a text with commas name the same groups."""
    assert read_one(tmp_path, with_lines(f"acl: {written}")).acl == ("nurses", "staff")


def test_an_unknown_key_is_noticed_and_no_fault(tmp_path: Path) -> None:
    """A key that looks like none of ours is allowed, and said with its line."""
    found = read_files(tmp_path, {"una.md": with_lines("reviewed_by: Ana")})
    assert [(notice.file, notice.line) for notice in found.notices] == [("una.md", 3)]
    assert "'reviewed_by'" in found.notices[0].message
    assert len(found.cards) == 1


def test_a_card_without_text_is_a_card_and_noticed(tmp_path: Path) -> None:
    """A card may have no body; the notice says that no answer can cite it."""
    found = read_files(tmp_path, {"una.md": "---\ntitle: Una\n---"})
    assert [card.text for card in found.cards] == [""]
    assert "no text" in found.notices[0].message


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: text.replace("Medicación", "Medi\u00adca\u00adción"),
        lambda text: text.replace("Medicación", "Medi\u200bca\u2060ción"),
        lambda text: text.replace("---\n", "---  \n"),
    ],
    ids=["BOM", "CRLF", "CR", "BOM-and-CRLF", "NFD", "soft-hyphens", "zero-width", "spaces-behind-fences"],
)
def test_ways_of_writing_the_same_card(tmp_path: Path, change: object) -> None:
    """Byte order mark, line ends, decomposed accents and invisible marks change nothing about a card."""
    assert callable(change)
    text = with_lines("acl: [staff]", "topics: [Medicación]", body="Medicación de mañana.\n\nOtra línea.")
    assert read_one(tmp_path / "a", change(text)) == read_one(tmp_path / "b", text)


def test_an_id_means_the_same_composed_or_not(tmp_path: Path) -> None:
    """File names with composed and decomposed accents give one id, so the two files are named as duplicates."""
    names = [unicodedata.normalize(form, "dosificación.md") for form in ("NFC", "NFD")]
    found = read_files(tmp_path, {f"{number}/../{name}": with_lines() for number, name in enumerate(names)})
    assert list(found.cards) == []
    assert len(found.faults) == 2
    assert all("'dosificacion'" in fault.message for fault in found.faults)


@given(st.text())
@BOUNDED
def test_normalising_twice_changes_nothing(text: str) -> None:
    """Normalised text is NFC, has LF line ends and no invisible marks, and stays as it is when normalised again."""
    once = normalise_text(text)
    assert unicodedata.is_normalized("NFC", once)
    assert not set(once) & set("\r\u00ad\u200b\u2060\ufeff")
    assert normalise_text(once) == once


def test_joiners_that_carry_meaning_stay() -> None:
    """The zero-width joiner of emoji and of some scripts is kept."""
    assert normalise_text("👩‍⚕️ نمی‌خواهم") == "👩‍⚕️ نمی‌خواهم"


@given(st.text())
@BOUNDED
def test_a_clean_line_is_one_line(text: str) -> None:
    """What a field holds has no line ends, no control characters and no doubled spaces."""
    line = clean_line(text)
    assert line == " ".join(line.split())
    assert not any(unicodedata.category(letter) == "Cc" for letter in line)


def test_escapes_bring_no_control_characters_in(tmp_path: Path) -> None:
    """A YAML escape cannot put a line end, a NUL or a terminal code into a title."""
    assert read_one(tmp_path, '---\ntitle: "uno\\ndos\\0\\e[31m"\n---\n').title == "uno dos[31m"


COMMENTS = [
    ("none", "uno dos", "uno dos"),
    ("inside a line", "uno <!-- nota --> dos", "uno  dos"),
    ("over lines", "uno\n<!-- nota\n\nlarga -->\ndos", "uno\n\ndos"),
    ("two", "<!-- a -->uno<!-- b -->", "uno"),
    ("not closed", "uno <!-- nota", "uno <!-- nota"),
    ("in a fence", "```\n<!-- código -->\n```", "```\n<!-- código -->\n```"),
    ("in a tilde fence", "~~~html\n<!-- código -->\n~~~", "~~~html\n<!-- código -->\n~~~"),
    ("in an unclosed fence", "```\n<!-- código -->", "```\n<!-- código -->"),
    ("behind a fence", "```\na\n```\n<!-- nota -->fin", "```\na\n```\nfin"),
    ("before a fence", "<!-- nota -->\n```\n<!-- a -->\n```", "\n```\n<!-- a -->\n```"),
    ("with a fence in it", "<!--\n```\na\n```\n-->fin", "fin"),
    ("with half a fence in it", "<!--\n```\n-->\nuno <!-- nota --> dos", "\nuno  dos"),
    ("in a fence of four", "````\n```\n<!-- a -->\n```\n````", "````\n```\n<!-- a -->\n```\n````"),
]


@pytest.mark.parametrize(
    ("body", "kept"), [row[1:] for row in COMMENTS], ids=[row[0].replace(" ", "-") for row in COMMENTS]
)
def test_comments_are_removed_outside_code(body: str, kept: str) -> None:
    """HTML comments leave the text, those in fenced code stay, and an unclosed one is text."""
    assert remove_comments(body) == kept


def test_a_comment_that_is_removed_is_in_no_card(tmp_path: Path) -> None:
    """A note to other editors is not in the text of the card."""
    assert read_one(tmp_path, with_lines(body="Uno.\n\n<!-- revisar con Ana -->\n\nDos.")).text == "Uno.\n\n\n\nDos."


SLUGS = [
    ("Guías/Dosis olvidada.md", "guias-dosis-olvidada"),
    ("una.md", "una"),
    ("Ñandú.md", "nandu"),
    ("a_b.c--d.md", "a-b-c-d"),
    ("2026/11 Noviembre (v2).md", "2026-11-noviembre-v2"),
    ("  espacios  .md", "espacios"),
    (f"{'a' * 79} b.md", "a" * 79),
    ("薬.md", ""),
]


@pytest.mark.parametrize(("path", "expected"), SLUGS, ids=[path[:20] for path, _ in SLUGS])
def test_slug(path: str, expected: str) -> None:
    """A file that names no id is named by its path: accents folded, lower case, hyphens."""
    assert slug(path) == expected
    assert slug(unicodedata.normalize("NFD", path)) == expected


@given(st.text())
@BOUNDED
def test_a_slug_can_always_be_used_or_is_empty(text: str) -> None:
    """Whatever the path, its slug has only letters, digits and single hyphens, and at most 80 of them."""
    found = slug(text)
    assert len(found) <= 80
    assert all(part.isascii() and part.isalnum() and part == part.lower() for part in found.split("-") if found)


def test_a_name_without_latin_letters_needs_an_id(tmp_path: Path) -> None:
    """A file whose name gives no id is refused with the remedy, and read once it names one."""
    refused = read_files(tmp_path / "a", {"薬.md": with_lines()})
    assert [(fault.file, fault.line) for fault in refused.faults] == [("薬.md", 1)]
    assert "write id:" in refused.faults[0].message
    assert read_files(tmp_path / "b", {"薬.md": with_lines("id: kusuri")}).cards[0].card_id == "kusuri"


def test_nested_folders_and_hidden_files(tmp_path: Path) -> None:
    """Cards are found at any depth; hidden files, hidden folders and other files are left alone."""
    found = read_files(
        tmp_path,
        {
            "b.md": with_lines(),
            "x/y/z/a.md": with_lines(),
            ".oculta.md": "rota",
            ".git/c.md": "rota",
            "x/.obsidian/d.md": "rota",
            "leeme.txt": "rota",
        },
    )
    assert found.faults == ()
    assert [card.card_id for card in found.cards] == ["b", "x-y-z-a"]
    assert found.file_count == 2


def test_a_folder_of_the_name_of_a_card_is_walked(tmp_path: Path) -> None:
    """A folder whose name ends in .md is a folder."""
    assert [card.card_id for card in read_files(tmp_path, {"x.md/a.md": with_lines()}).cards] == ["x-md-a"]


def test_duplicate_ids_name_both_files(tmp_path: Path) -> None:
    """Two files of one id give no card, and each fault stands on its id and names the other file."""
    files = {"a.md": with_lines("id: doble"), "b/doble.md": with_lines("id: doble"), "c.md": with_lines()}
    found = read_files(tmp_path, files)
    assert [card.card_id for card in found.cards] == ["c"]
    assert [(fault.file, fault.line) for fault in found.faults] == [("a.md", 3), ("b/doble.md", 3)]
    assert "b/doble.md" in found.faults[0].message
    assert "a.md" in found.faults[1].message


def test_a_slug_and_an_explicit_id_may_clash(tmp_path: Path) -> None:
    """A card named by its path and one that names the same id are duplicates too."""
    found = read_files(tmp_path, {"x/y.md": with_lines(), "z.md": with_lines("id: x-y")})
    assert [(fault.file, fault.line) for fault in found.faults] == [("x/y.md", 1), ("z.md", 3)]


PLAIN = [
    ("a heading", "Intro.\n\n# El título\n\nTexto.", "El título"),
    ("no heading", "Texto.", "Una nota"),
    ("a smaller heading", "## Sección\n\nTexto.", "Una nota"),
    ("a sign in code", "```sh\n# instalar\n```\n\n# El título", "El título"),
    ("a closed heading", "# El título #", "El título"),
    ("empty", "", "Una nota"),
]


@pytest.mark.parametrize(("content", "title"), [row[1:] for row in PLAIN], ids=[row[0] for row in PLAIN])
def test_plain_markdown_takes_its_title_from_the_text(tmp_path: Path, content: str, title: str) -> None:
    """With PLAIN_MARKDOWN a file without front matter is public, and titled by its first heading or its name."""
    found = read_files(tmp_path, {"Una nota.md": content}, plain_markdown=True)
    assert found.faults == ()
    assert (found.cards[0].title, found.cards[0].acl, found.cards[0].text) == (title, ("public",), content)


def test_plain_markdown_does_not_excuse_broken_front_matter(tmp_path: Path) -> None:
    """With PLAIN_MARKDOWN a file that has front matter still obeys its rules."""
    files = {
        "a.md": "---\nacl: [staff]\n---\n# Título\n",
        "b.md": "---\ntitle: B\n",
        "c.md": with_lines("acl: [staff]"),
    }
    found = read_files(tmp_path, files, plain_markdown=True)
    assert [fault.file for fault in found.faults] == ["a.md", "b.md"]
    assert found.cards[0].acl == ("staff",)


def test_rules_in_the_body_stay(tmp_path: Path) -> None:
    """Only the first pair of --- lines is front matter; later ones belong to the text."""
    assert read_one(tmp_path, with_lines(body="Uno.\n\n---\n\nDos.\n---")).text == "Uno.\n\n---\n\nDos.\n---"


def test_the_folder_need_not_hold_anything(tmp_path: Path) -> None:
    """An empty folder is read as no cards and no faults."""
    found = read_cards(tmp_path)
    assert (list(found.cards), found.faults, found.notices, found.file_count) == ([], (), (), 0)


@given(st.text(alphabet=st.sampled_from("abn: \n-[]{}#&*!|>'\"%@`,?~\t\\"), max_size=60))
@BOUNDED
def test_any_front_matter_is_read_or_refused_with_a_line(text: str) -> None:
    """Whatever stands in the front matter, it is a mapping of texts or a fault on one of its lines."""
    try:
        values, line = parse_front_matter(text), 2
    except FrontMatterInvalid as error:
        values, line = {}, error.line
    assert all(isinstance(value.content, str | list | None) for value in values.values())
    assert 2 <= line <= 3 + text.count("\n")


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n")), min_size=1))
@BOUNDED
def test_splitting_loses_nothing(lines: list[str]) -> None:
    """Front matter, fences and body are all the lines of the file, and the body's first line is where it says."""
    text = "\n".join(["---", *lines, "---", "cuerpo"])
    parts = split_front_matter(text)
    assert parts is not None
    front, body, first = parts
    assert text.split("\n")[first - 1 :] == body.split("\n")
    assert text.split("\n")[1 : first - 2] == (front.split("\n") if first > 3 else [])


def case(name: str) -> CardFolder:
    return read_cards(CASES_DIR / name / "cards")


def test_case_o01_byte_order_mark() -> None:
    """A byte order mark does not cost a card its id or its access rule."""
    found = case("O01_bom")
    assert found.faults == ()
    assert [(card.card_id, card.acl) for card in found.cards] == [("card-bom", ("staff",))]
    assert "\ufeff" not in found.cards[0].text


def test_case_o02_yaml_types() -> None:
    """Dates, nulls and empty lists are read; the two broken files are named with their lines, and cost no other."""
    found = case("O02_yaml_types")
    cards = {card.card_id: card for card in found.cards}
    assert sorted(cards) == ["card-buena", "card-fecha", "card-lista-vacia", "card-nulo"]
    assert cards["card-fecha"].accessed_at == "2026-11-30"
    assert cards["card-nulo"].source is None
    assert cards["card-lista-vacia"].topics == ()
    assert [(fault.file, fault.line) for fault in found.faults] == [
        ("card-dos-puntos.md", 3),
        ("card-fecha-mala.md", 6),
    ]


def test_case_o03_rules_in_the_body() -> None:
    """Both halves around a rule are kept, a block value may hold one, and a file without front matter is named."""
    found = case("O03_rules_in_body")
    cards = {card.card_id: card for card in found.cards}
    assert sorted(cards) == ["card-bloque", "card-regla", "card-setext"]
    assert "Primera parte" in cards["card-regla"].text
    assert "Segunda parte" in cards["card-regla"].text
    assert cards["card-bloque"].text.startswith("Tome la pastilla azul")
    assert [fault.file for fault in found.faults] == ["sin-portada.md"]


def test_case_o04_duplicate_ids() -> None:
    """Both files of a doubled id are named; a card of forty equal paragraphs is fine."""
    found = case("O04_duplicate_ids")
    assert [card.card_id for card in found.cards] == ["card-rep"]
    assert [fault.file for fault in found.faults] == ["a/basico.md", "b/basico.md"]
    assert "b/basico.md" in found.faults[0].message
    assert "a/basico.md" in found.faults[1].message


def test_case_o05_separators_in_ids() -> None:
    """Ids that could be mistaken for a row, a path or two words are refused by name."""
    found = case("O05_separator_in_id")
    assert [card.card_id for card in found.cards] == ["card-guia"]
    named = [fault.message.split("'")[1] for fault in found.faults]
    assert named == ["card-guia::1", "card/barra", "card con espacio", "../card-punto"]
