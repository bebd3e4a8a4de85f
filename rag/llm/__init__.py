"""A client of OpenAI-compatible chat endpoints: bounded in time and size, patient with overload, discreet in errors."""

from rag.llm.breaker import CircuitBreaker
from rag.llm.client import BODY_BYTES, LONGEST_WAIT_SECONDS, ChatClient, Message
from rag.llm.faults import LlmFailed
from rag.llm.replies import Completion, StreamPiece
from rag.llm.streaming import StreamLimits

__all__ = [
    "BODY_BYTES",
    "LONGEST_WAIT_SECONDS",
    "ChatClient",
    "CircuitBreaker",
    "Completion",
    "LlmFailed",
    "Message",
    "StreamLimits",
    "StreamPiece",
]
