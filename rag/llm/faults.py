"""What can go wrong with a language model, said without its key, a prompt, or much of what its server wrote."""

from __future__ import annotations

from collections.abc import Sequence

from rag.errors import RagError

EXCERPT_CHARS = 120
ECHO_CHARS = 16
"""A piece this long of a prompt or a key makes a server's text unfit to be shown."""

UNQUOTED = frozenset({401, 403, 404})
"""Statuses of which the server's words are not shown; every other request would get them too."""
_PATIENCE = "Try later, or ask fewer things at a time."
_NO_CHAT = "Check that it is a chat endpoint."


class LlmFailed(RagError):
    """
    The language model gave no answer that can be used.

    ``reason`` is one of

    - ``timeout``: too slow to connect, to begin, to go on or to end
    - ``unreachable``: no connection, or one that broke before there was a response
    - ``rate_limited``: status 429
    - ``denied``: status 401 or 403
    - ``status``: any other status but 200
    - ``redirect``: status 3xx, which is never followed
    - ``too_large``: more bytes than are read
    - ``error_body``: an error under status 200, whole or in a stream
    - ``bad_response``: not what a chat endpoint sends

    and, of streams only,

    - ``cut_off``: the stream broke or ended before it said that it was done
    - ``empty``: it ended as it should, without any text
    - ``circuit_open``: nothing was asked, as too many requests before failed

    The message holds no prompt, no key, and little of what the server said.
    """

    def __init__(self, reason: str, what: str, where: str, remedy: str, *, status: int | None = None) -> None:
        super().__init__(f"The language model at {where} {what}. {remedy}")
        self.reason = reason
        self.status = status

    @property
    def is_hopeless(self) -> bool:
        """Whether every other request would fail likewise."""
        return self.status in UNQUOTED or self.reason == "redirect"


class Retriable(Exception):
    """A fault that may pass, with the seconds that the server asks to wait, if it does."""

    def __init__(self, failed: LlmFailed, after_seconds: float | None = None) -> None:
        super().__init__(failed.reason)
        self.failed = failed
        self.after_seconds = after_seconds


class Faults:
    """The faults of one endpoint."""

    def __init__(self, where: str, key: str | None) -> None:
        self._where = where
        self._key = key

    def failed(self, reason: str, what: str, remedy: str, *, status: int | None = None) -> LlmFailed:
        return LlmFailed(reason, what, self._where, remedy, status=status)

    def bad(self, what: str) -> LlmFailed:
        return self.failed("bad_response", f"sent an answer that {what}", _NO_CHAT)

    def error_body(self, message: str, prompts: Sequence[str]) -> LlmFailed:
        said = self.excerpt(message, prompts)
        return self.failed("error_body", f"answered with an error under status 200{said}", "Check its log.")

    def timed_out(self, what: str) -> LlmFailed:
        return self.failed("timeout", what, "Allow more time, or ask fewer things at a time.")

    def unreachable(self, fault: BaseException) -> LlmFailed:
        # the type only: the text of some faults repeats what was sent
        what = f"cannot be reached ({type(fault).__name__})"
        return self.failed("unreachable", what, "Check that it runs and its address.")

    def cut_off(self, how: str) -> LlmFailed:
        return self.failed("cut_off", f"broke off its answer ({how})", "Check its log, and what stands between.")

    def too_large(self, limit_bytes: int) -> LlmFailed:
        what = f"sent more than {limit_bytes} bytes for one answer"
        return self.failed("too_large", what, "Check that the address is a chat endpoint.")

    def too_long_a_wait(self, failed: LlmFailed, after_seconds: float, longest_seconds: float) -> LlmFailed:
        """Of a server that asks for more patience than there is; reason and status stay those of its fault."""
        what = f"asks to wait {after_seconds:.0f} seconds, more than the {longest_seconds:.0f} that are waited"
        return self.failed(failed.reason, what, _PATIENCE, status=failed.status)

    def status(self, status: int, message: str, prompts: Sequence[str], *, passes: bool) -> LlmFailed:
        """Of a status that is not 200; ``passes`` says that it may be better later."""
        if 300 <= status < 400:
            remedy = "Set the address it redirects to, if you trust it."
            return self.failed("redirect", f"redirects ({status})", remedy, status=status)
        if status in (401, 403):
            # what the server says here may repeat the key
            return self.failed("denied", f"denies access ({status})", "Check the key and the model.", status=status)
        if status == 404:
            return self.failed("status", "is not there (404)", "Check address and model.", status=status)
        reason = "rate_limited" if status == 429 else "status"
        remedy = _PATIENCE if passes else "Check model, address and limits."
        return self.failed(reason, f"answered {status}{self.excerpt(message, prompts)}", remedy, status=status)

    def excerpt(self, text: str, prompts: Sequence[str]) -> str:
        """What may be shown of a server's words, with a colon before it; nothing if they repeat key or prompt."""
        shown = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        if self._key and self._key in shown:
            return ""
        shown = shown[:EXCERPT_CHARS]
        secrets = [" ".join(prompt.split()) for prompt in prompts] + [self._key or ""]
        pieces = [shown[at : at + ECHO_CHARS] for at in range(max(1, len(shown) - ECHO_CHARS + 1))]
        if not shown or any(piece in secret for piece in pieces for secret in secrets):
            return ""
        return f": {shown}"
