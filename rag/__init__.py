"""Fichero: cited answers from a box of Markdown cards."""

import os

# ONNX Runtime reports to its maker unless it is told not to before it is imported
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
