# The program alone, linked statically but for libc. docker build -t shardwright .
# docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/data" shardwright inspect ckpt
FROM debian:bookworm-slim AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# Here and below versions are those of the stable release: pinned ones would be gone at the next point release.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends cmake ninja-build g++ libfmt-dev libcli11-dev nlohmann-json3-dev \
      libyaml-cpp-dev libdeflate-dev libxxhash-dev libzstd-dev libssl-dev libcurl4-openssl-dev libexpat1-dev \
      node-d3 && \
    rm -rf /var/lib/apt/lists/*
COPY . /source
WORKDIR /source
RUN cmake --preset release -DSHARDWRIGHT_STATIC=ON && \
    cmake --build --preset release --target shardwright_cli && \
    install -D -s build/release/shardwright /out/usr/local/bin/shardwright && \
    install -D -m 644 -t /out/usr/share/doc/shardwright LICENSE licenses/*.txt

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libcurl4 ca-certificates && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
RUN useradd --create-home --uid 1000 shardwright && install -d -o shardwright -g shardwright /data
USER 1000:1000
WORKDIR /data
ENTRYPOINT ["shardwright"]
CMD ["--help"]
