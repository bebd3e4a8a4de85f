"""Fichero: cited answers from a box of Markdown cards."""

import os

# ONNX Runtime reports to its maker unless it is told not to before it is imported
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# NumPy's products are small here, and two threads for one of them wait for each other longer than they work; questions
# side by side have a core each
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
