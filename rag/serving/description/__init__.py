"""The HTTP interface, described as an OpenAPI document."""

from rag.serving.description.document import describe

__all__ = ["describe"]
