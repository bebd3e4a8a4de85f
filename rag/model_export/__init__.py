"""Turn packaged multilingual-e5 weights into the ONNX folder that the service loads."""
