"""The service beside what others would build of LangChain and Chroma: ``python -m benchmarks.peer``."""
