# The model and the index are made here and baked in; to change the knowledge, edit cards/ and build again.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /srv/fichero
ENV PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 ORT_DISABLE_TELEMETRY=1
COPY requirements.txt requirements-build.txt requirements-model.txt requirements-bill.txt ./
# three environments: one to be shipped, one to export the model with, one to list what is shipped
RUN python3 -m venv /opt/run && /opt/run/bin/python -m pip install --require-hashes -r requirements.txt
RUN python3 -m venv /opt/export && /opt/export/bin/python -m pip install --require-hashes -r requirements-build.txt
RUN python3 -m venv /opt/bill && /opt/bill/bin/python -m pip install --require-hashes -r requirements-bill.txt
COPY rag ./rag
RUN /opt/export/bin/python -m rag.model_export --cache /tmp/weights && rm -r /tmp/weights
COPY build_index.py ./
COPY cards ./cards
COPY tests/golden ./tests/golden
RUN /opt/run/bin/python build_index.py && rm -r index/cache
# what runs needs neither an installer nor the exporter, nor these, which come along and nothing here needs (110 MB);
# without rich, httpx does not load a command of its own at every start
RUN /opt/run/bin/python -m pip uninstall --yes kubernetes hf-xet huggingface-hub aiohttp rich pygments typer fsspec filelock \
 && /opt/run/bin/python -m pip uninstall --yes pip setuptools
COPY pyproject.toml ./
RUN /opt/bill/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
      --output-file sbom.cdx.json /opt/run/bin/python \
 && /opt/run/bin/python -m rag.model_export.bill sbom.cdx.json model && rm -r rag/model_export

FROM ${BASE_IMAGE}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="fichero" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.description="Cited answers from a box of Markdown cards"
WORKDIR /srv/fichero
COPY --from=build /opt/run /opt/run
COPY --from=build /srv/fichero/rag ./rag
COPY --from=build /srv/fichero/model ./model
COPY --from=build /srv/fichero/index ./index
COPY --from=build /srv/fichero/sbom.cdx.json ./
COPY app.py LICENSE LICENCES.md ./
COPY static ./static
# Chroma does not open without a home; ONNX Runtime would report to its maker
ENV PATH=/opt/run/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 ORT_DISABLE_TELEMETRY=1 PORT=8000
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-m", "rag.serving.healthcheck"]
CMD ["python", "app.py"]
