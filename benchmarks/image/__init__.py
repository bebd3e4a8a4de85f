"""The image as it is built and run: ``python -m benchmarks.image``, ``make image-check``."""
