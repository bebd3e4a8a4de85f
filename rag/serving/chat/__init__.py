"""The same answers for programs that speak OpenAI's chat protocol."""

from rag.serving.chat.errors import with_chat_errors
from rag.serving.chat.reading import IGNORED_ROLES, Chat, read_chat
from rag.serving.chat.replies import MODEL, chat_problem_block, chunk_blocks, completion, model_list

__all__ = [
    "IGNORED_ROLES",
    "MODEL",
    "Chat",
    "chat_problem_block",
    "chunk_blocks",
    "completion",
    "model_list",
    "read_chat",
    "with_chat_errors",
]
