# The image: built in one stage, run in another that has neither compiler nor toolkit. Both are of one
# distribution, so of one libc. With NVIDIA's images, the default, it serves GPUs and the CPU; without a GPU,
# plain images of a distribution do, and what has no nvcc builds the CPU backend alone:
#   docker build --build-arg BUILD_IMAGE=debian:bookworm-slim --build-arg RUN_IMAGE=debian:bookworm-slim .
ARG BUILD_IMAGE=nvidia/cuda:13.0.3-devel-ubuntu24.04
ARG RUN_IMAGE=nvidia/cuda:13.0.3-base-ubuntu24.04

FROM ${BUILD_IMAGE} AS build
# g++ is for nvcc, which compiles its host code by it.
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        cmake g++ gcc libc6-dev libgnutls28-dev libjansson-dev libjs-chart.js libmicrohttpd-dev libopenblas-dev ninja-build pkg-config && \
    rm -rf /var/lib/apt/lists/*
# AUTO, ON (no nvcc is an error) or OFF, and the GPUs to compile for: CMakeLists.txt says which if empty.
ARG MATMULD_CUDA=AUTO
ARG CUDA_ARCHITECTURES=
WORKDIR /source
COPY . .
RUN PATH=/usr/local/cuda/bin:$PATH && \
    cmake --preset release -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr/local \
        -DMATMULD_CUDA="$MATMULD_CUDA" \
        ${CUDA_ARCHITECTURES:+-DMATMULD_CUDA_ARCHITECTURES="$CUDA_ARCHITECTURES"} && \
    cmake --build --preset release && \
    DESTDIR=/stage cmake --install build/release --strip

FROM ${RUN_IMAGE}
# CUBLAS=1 brings cuBLAS, for the variant blas on GPUs: some hundred megabytes, from the repository that
# NVIDIA's images name, in the version of the image's CUDA.
ARG CUBLAS=0
# libstdc++6 is for the CUDA backend: nvcc links it.
RUN packages='libjansson4 libmicrohttpd12 libopenblas0-pthread libstdc++6' && \
    if [ "$CUBLAS" = 1 ]; then \
        : "${CUDA_VERSION:?CUBLAS=1 takes an image of NVIDIA as RUN_IMAGE}" && \
        packages="$packages libcublas-$(echo "$CUDA_VERSION" | cut -d . -f 1,2 | tr . -)"; \
    fi && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages && \
    apt-get clean && rm -rf /var/lib/apt/lists/* && \
    if [ "$CUBLAS" = 1 ]; then ldconfig -p | grep 'libcublas\.so\.1[23]'; fi
COPY --from=build /stage/ /
# A library that is missing is to be found now.
RUN matmuld --version

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="matmuld" \
      org.opencontainers.image.description="Matrix products over HTTP, on CPUs and on NVIDIA GPUs" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# Which GPUs, and which parts of the driver, NVIDIA's container toolkit brings in. Without MATMULD_TLS_CERT there is
# no TLS, and without MATMULD_API_KEY no key: then who publishes the port decides who may multiply.
# OpenBLAS's threads sleep after a product; by default they keep their cores busy for some 20 ms.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    MATMULD_HOST=0.0.0.0 \
    OPENBLAS_THREAD_TIMEOUT=4
EXPOSE 8080

# No name is needed for the user, and none of its files: nothing is written anywhere, so that the root can be
# read-only. (The driver would keep what it compiles for GPUs newer than the program under $HOME/.nv, and does
# without where it cannot.)
USER 10001:10001

# It drains on SIGTERM for up to 30 s; docker stop --time and the like have to grant that.
STOPSIGNAL SIGTERM

# Whether the process is up. Whether it can multiply is for a readiness probe to ask, at GET /readyz.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/matmuld", "--healthcheck"]
ENTRYPOINT ["/usr/local/bin/matmuld"]
