# The container of the action: the binary, and what agents need to work on a
# repository. Released tags of action.yml name an image that was built of this file;
# elsewhere the runner builds it for the job.

FROM --platform=$BUILDPLATFORM golang:1.26-trixie@sha256:4ee9ffa999b4583ce281939cdff828763083610292f252279a0cee77473bd9a7 AS build
WORKDIR /src
# The modules are a layer of their own: they change less often than the source.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION REVISION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$VERSION -X main.commit=$REVISION" -o /out/uwf ./cmd/uwf

FROM debian:trixie-20260918-slim@sha256:a99cfc517144bc59b1978475ec53b46ecabec7e43635402ee5b77cc54cd1b20a
# Versions are those of the pinned Debian release; security updates come with a build.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        bash ca-certificates coreutils curl git jq ripgrep \
    && rm -rf /var/lib/apt/lists/* \
    # Agents run as this user, never as root. It owns nothing and can't log in.
    && groupadd --gid 60999 uwf-agent \
    && useradd --uid 60999 --gid 60999 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin --comment "uwf's agents" uwf-agent
COPY --from=build /out/uwf /usr/local/bin/uwf

ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="uwf" \
      org.opencontainers.image.description="Workflows for teams of AI agents; the scheduler is CI, the database is git" \
      org.opencontainers.image.source="https://github.com/united-workforce/uwf" \
      org.opencontainers.image.documentation="https://github.com/united-workforce/uwf#readme" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"

# Root, as the runner expects of a container action: it gives the workspace to the
# agents' user while they work, and back afterwards. There is no USER for that reason.
ENTRYPOINT ["/usr/local/bin/uwf"]
CMD ["action"]
