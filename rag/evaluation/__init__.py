"""Golden cases or a BEIR folder to figures and a report of retrieval and answers: ``python -m rag.evaluation``."""
