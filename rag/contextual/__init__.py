"""What is said around a chunk so that it can be found: free strategies, and sentences by a language model."""

from rag.contextual.cache import ContextCache
from rag.contextual.free import (
    CONTEXT_CHARS,
    CONTEXT_VERSION,
    STRATEGIES,
    acl_version,
    check_strategy,
    contextualise,
    row_id,
)
from rag.contextual.generation import ContextGenerator, GenerationStopped
from rag.contextual.prompt import GENERATOR_VERSION, PROMPT_VERSION
from rag.contextual.report import ContextReport
from rag.contextual.validation import VALIDATION_VERSION

__all__ = [
    "CONTEXT_CHARS",
    "CONTEXT_VERSION",
    "GENERATOR_VERSION",
    "PROMPT_VERSION",
    "STRATEGIES",
    "VALIDATION_VERSION",
    "ContextCache",
    "ContextGenerator",
    "ContextReport",
    "GenerationStopped",
    "acl_version",
    "check_strategy",
    "contextualise",
    "row_id",
]
