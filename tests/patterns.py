"""The regular expressions of the code, and texts that would make the careless ones among them slow."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.conftest import ROOT

# what re compiles with: no public module tells what a pattern is made of
_parser: Any = importlib.import_module("re._parser")

ANYWHERE = "finditer"
"""Tried for a pattern of which nothing shows how it is used: it does all that the other ways do."""
WAYS = ("fullmatch", "match", "search", ANYWHERE)
_SAME = {"sub": ANYWHERE, "subn": ANYWHERE, "split": ANYWHERE, "findall": ANYWHERE}
_SAMPLES = 2
_MOST_SIGNS = 5
_STRANGERS = "x7 -\n~é\x00"
_OF_CATEGORY = {
    "CATEGORY_DIGIT": "7",
    "CATEGORY_NOT_DIGIT": "x",
    "CATEGORY_SPACE": " \n",
    "CATEGORY_NOT_SPACE": "x",
    "CATEGORY_WORD": "a7",
    "CATEGORY_NOT_WORD": "-",
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression, where it stands, and the ways in which it is used there."""

    place: str
    pattern: re.Pattern[Any]
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attack:
    """A piece that a text is made of, as often as one likes, and what stands around."""

    before: str
    piece: str
    after: str


def modules_of(files: Iterable[Path]) -> Iterator[tuple[ModuleType, ast.Module]]:
    """Modules of the project, imported, and their syntax; those that only run as a command are left out."""
    for path in files:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.name != "__main__.py":
            yield importlib.import_module(name.removesuffix(".__init__")), ast.parse(path.read_text("utf-8"))


def expressions(modules: Iterable[tuple[ModuleType, ast.Module]]) -> list[Expression]:
    """All regular expressions that modules hold or write out in a call, each once."""
    there = list(modules)
    ways = _ways_of(tree for _, tree in there)
    found: dict[tuple[str, re.Pattern[Any]], Expression] = {}
    for module, tree in there:
        held = [(name, pattern) for name, value in vars(module).items() for pattern in _patterns_in(value)]
        for name, pattern in held:
            expression = Expression(f"{module.__name__}.{name}", pattern, tuple(sorted(ways.get(name, {ANYWHERE}))))
            found.setdefault((name, pattern), expression)
        for node in ast.walk(tree):
            if called := _call_of_re(node):
                way, written = called
                # a constant, or made of what the module holds
                pattern = re.compile(eval(compile(ast.Expression(written), module.__name__, "eval"), vars(module)))
                place = f"{module.__name__}:{written.lineno}"
                found[place, pattern] = Expression(place, pattern, (_SAME.get(way, way),))
    return list(found.values())


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    """Those in what a module holds, also within its tuples, dictionaries and records."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _patterns_in(item)
    elif isinstance(value, Mapping):
        yield from _patterns_in(list(value.values()))
    elif not isinstance(value, type) and hasattr(value, "__dataclass_fields__"):
        yield from _patterns_in([getattr(value, name) for name in value.__dataclass_fields__])


def _call_of_re(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The function and the pattern of a call such as ``re.split(r"...", text)``."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and (node.func.attr in WAYS or node.func.attr in _SAME)
    ):
        return node.func.attr, node.args[0]
    return None


def _ways_of(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """For each name, the methods of a pattern that are called, or given away, on it."""
    ways: defaultdict[str, set[str]] = defaultdict(set)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                way = _SAME.get(node.attr, node.attr)
                if way in WAYS:
                    ways[node.value.id].add(way)
    return ways


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """
    Texts for a pattern, from its own alphabet.

    Each of its repetitions goes on and on and comes to a wrong end, its beginnings stand one behind the other, and its
    signs, alone and by twos, fill a text.
    """
    tree = list(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    found = {Attack("", "".join(pair), "\x00") for pair in product(_signs(tree), repeat=2)}
    for before, body in _repetitions(tree, ""):
        for piece in _samples(body):
            found |= {Attack(before, piece, "\x00"), Attack("", piece, ""), Attack("", before + piece, "\x00")}
    for stop in range(1, len(tree) + 1):
        found |= {Attack("", piece, "\x00") for piece in _samples(tree[:stop])}
    return sorted((attack for attack in found if attack.piece), key=lambda attack: (attack.piece, attack.before))


def _signs(tree: Any) -> list[str]:
    """A few signs of a pattern's alphabet, as they come."""
    found: dict[str, None] = {}
    for operation, value in tree:
        name = str(operation)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            found |= dict.fromkeys(_samples([(operation, value)]))
        else:
            for inner in _inside(name, value):
                found |= dict.fromkeys(_signs(inner))
    return list(found)[:_MOST_SIGNS]


def _repetitions(tree: Any, before: str) -> Iterator[tuple[str, Any]]:
    """What is repeated in a pattern, with a text that leads up to it."""
    for operation, value in tree:
        name = str(operation)
        if name.endswith("_REPEAT"):
            yield before, value[2]
        for inner in _inside(name, value):
            yield from _repetitions(inner, before)
        before += next(iter(_samples([(operation, value)])), "")


def _inside(name: str, value: Any) -> list[Any]:
    """The patterns that one part of a pattern is made of."""
    if name == "BRANCH":
        return [list(way) for way in value[1]]
    if name == "SUBPATTERN":
        return [list(value[-1])]
    if name == "ATOMIC_GROUP":
        return [list(value)]
    if name.endswith("_REPEAT"):
        return [list(value[2])]
    return [list(value[1])] if name in ("ASSERT", "ASSERT_NOT") else []


def _samples(tree: Any) -> list[str]:
    """A few texts that a pattern, or a part of it, matches."""
    texts = [""]
    for operation, value in tree:
        ways = _samples_of(str(operation), value)
        texts = [texts[at % len(texts)] + ways[at % len(ways)] for at in range(min(_SAMPLES, len(texts) * len(ways)))]
    return list(dict.fromkeys(texts))


def _samples_of(name: str, value: Any) -> list[str]:
    if name == "LITERAL":
        return [chr(value)]
    if name in ("NOT_LITERAL", "ANY"):
        return [sign for sign in _STRANGERS if sign != "\n" and ord(sign) != value][:2]
    if name == "IN":
        return _of_class(value)[:_SAMPLES]
    if name.endswith("_REPEAT"):
        least, most, body = value
        return [sample * min(max(least, 1), most) for sample in _samples(body)] if most else [""]
    if name in ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP"):
        return [sample for inner in _inside(name, value) for sample in _samples(inner)][: 2 * _SAMPLES] or [""]
    return [""]


def _of_class(items: Any) -> list[str]:
    """Signs of a class, the last ones of its ranges too; of one that excludes, some that it lets in."""
    named: list[str] = []
    for operation, value in items:
        if str(operation) == "LITERAL":
            named.append(chr(value))
        elif str(operation) == "RANGE":
            named += [chr(value[0]), chr(value[1])]
        elif str(operation) == "CATEGORY":
            named += _OF_CATEGORY[str(value)]
    if str(items[0][0]) != "NEGATE":
        return named
    return [sign for sign in _STRANGERS if not any(_holds(item, sign) for item in items[1:])] or ["x"]


def _holds(item: tuple[Any, Any], sign: str) -> bool:
    """Whether one part of a class stands for a sign."""
    name, value = str(item[0]), item[1]
    if name == "RANGE":
        return bool(value[0] <= ord(sign) <= value[1])
    if name == "LITERAL":
        return bool(value == ord(sign))
    return sign in _OF_CATEGORY[str(value)]
