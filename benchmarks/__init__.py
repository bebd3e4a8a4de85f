"""Commands that measure; each prints its figures with the machine they come from."""

import rag  # noqa: F401 - first, as it sets what NumPy reads when it is imported
