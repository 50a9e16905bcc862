# `aether mcp` or `aether view` for the project that is mounted at /project: docs/mcp.md shows the commands.
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[mcp,view]'

FROM python:3.13-slim
# hadolint ignore=DL3013  # the version is that of the wheel
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'aether-memory[mcp,view]' \
    && useradd --uid 1000 --create-home aether \
    && install -d -o aether -g aether /project
USER 1000
WORKDIR /project
ENTRYPOINT ["aether"]
CMD ["mcp"]
