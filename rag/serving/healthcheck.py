"""Is the service on this machine ready? ``python -m rag.serving.healthcheck`` ends with 0 if so, else with 1."""

from __future__ import annotations

import http.client
import os
import sys


def main() -> int:
    """Ask /readyz on ``PORT``."""
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ.get("PORT") or 8000), timeout=4)
    try:
        connection.request("GET", "/readyz")
        return 0 if connection.getresponse().status == 200 else 1
    except (OSError, http.client.HTTPException):
        return 1


if __name__ == "__main__":
    sys.exit(main())
