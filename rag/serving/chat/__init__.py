"""The same answers for programs that speak OpenAI's chat protocol."""

from rag.serving.chat.errors import with_chat_errors
from rag.serving.chat.reading import Chat, read_chat
from rag.serving.chat.replies import chunk_blocks, completion, model_list

__all__ = ["Chat", "chunk_blocks", "completion", "model_list", "read_chat", "with_chat_errors"]
