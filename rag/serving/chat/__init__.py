"""The same answers for programs that speak OpenAI's chat protocol."""

from rag.serving.chat.errors import with_chat_errors
from rag.serving.chat.reading import Chat, read_chat
from rag.serving.chat.replies import chat_problem_block, chunk_blocks, completion, model_list

__all__ = ["Chat", "chat_problem_block", "chunk_blocks", "completion", "model_list", "read_chat", "with_chat_errors"]
