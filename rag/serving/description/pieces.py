"""The small pieces that the description is put together from."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def ref(name: str, *, kind: str = "schemas") -> Schema:
    """A part that is described once, under ``components``."""
    return {"$ref": f"#/components/{kind}/{name}"}


def text(description: str, **more: Any) -> Schema:
    """A string."""
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description, **more}


def number(description: str, **more: Any) -> Schema:
    """A number."""
    return {"type": "number", "description": description, **more}


def truth(description: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description}


def choice(description: str, *values: str) -> Schema:
    """One of these strings."""
    return text(description, enum=list(values))


def list_of(items: Schema, description: str, **more: Any) -> Schema:
    """An array."""
    return {"type": "array", "description": description, "items": items, **more}


def map_of(values: Schema, description: str) -> Schema:
    """An object whose keys are not known beforehand."""
    return {"type": "object", "description": description, "additionalProperties": values}


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **values}


def record(description: str, properties: dict[str, Schema], *, required: list[str] | None = None) -> Schema:
    """An object with these properties and no others; all of them, unless it is said which."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def content(media_type: str, schema: Schema, **more: Any) -> Schema:
    """A body of one kind."""
    return {media_type: {"schema": schema, **more}}


def event(data: Schema, name: str | None = None) -> Schema:
    """An event of a stream, whose data is JSON, as an object of its fields."""
    named: Schema = {"event": {"const": name}} if name else {}
    coded = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    return {"type": "object", "properties": {**named, "data": coded}, "required": [*named, "data"]}
