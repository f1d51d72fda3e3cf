# Builds matmuld in one stage and copies it to another, which has no compiler. Both stages must use the same
# distribution, because the program needs the libc that it was built with. NVIDIA's images are the default. With images
# that have no nvcc, only the CPU backend is built:
#   docker build --build-arg BUILD_IMAGE=debian:bookworm-slim --build-arg RUN_IMAGE=debian:bookworm-slim .
ARG BUILD_IMAGE=nvidia/cuda:13.0.3-devel-ubuntu24.04
ARG RUN_IMAGE=nvidia/cuda:13.0.3-base-ubuntu24.04

FROM ${BUILD_IMAGE} AS build
# nvcc needs g++ to compile host code.
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        cmake g++ gcc libc6-dev libgnutls28-dev libjansson-dev libjs-chart.js libmicrohttpd-dev libopenblas-dev ninja-build pkg-config zlib1g-dev && \
    rm -rf /var/lib/apt/lists/*
# MATMULD_CUDA is AUTO, ON (fails without nvcc) or OFF. If CUDA_ARCHITECTURES is empty, CMakeLists.txt chooses the GPU
# architectures.
ARG MATMULD_CUDA=AUTO
ARG CUDA_ARCHITECTURES=
# The commit, because the build context has no .git. docker/build.sh gives it.
ARG REVISION=unknown
WORKDIR /source
COPY . .
RUN PATH=/usr/local/cuda/bin:$PATH && \
    cmake --preset release -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr/local \
        -DMATMULD_CUDA="$MATMULD_CUDA" -DMATMULD_COMMIT="$REVISION" \
        ${CUDA_ARCHITECTURES:+-DMATMULD_CUDA_ARCHITECTURES="$CUDA_ARCHITECTURES"} && \
    cmake --build --preset release && \
    DESTDIR=/stage cmake --install build/release --strip

FROM ${RUN_IMAGE}
# CUBLAS=1 installs cuBLAS, which the variant blas needs on GPUs. It takes some hundred megabytes, and works only with
# an image by NVIDIA, which has the package repository and the variable CUDA_VERSION.
ARG CUBLAS=0
# The CUDA backend needs libstdc++6, because nvcc links it.
RUN packages='libjansson4 libmicrohttpd12 libopenblas0-pthread libstdc++6 zlib1g' && \
    if [ "$CUBLAS" = 1 ]; then \
        : "${CUDA_VERSION:?CUBLAS=1 needs an image by NVIDIA as RUN_IMAGE}" && \
        packages="$packages libcublas-$(echo "$CUDA_VERSION" | cut -d . -f 1,2 | tr . -)"; \
    fi && \
    apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages && \
    apt-get clean && rm -rf /var/lib/apt/lists/* && \
    if [ "$CUBLAS" = 1 ]; then ldconfig -p | grep 'libcublas\.so\.1[23]'; fi
COPY --from=build /stage/ /
# Fails the build if a library is missing.
RUN matmuld --version

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="matmuld" \
      org.opencontainers.image.description="Matrix products over HTTP, on CPUs and on NVIDIA GPUs" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# NVIDIA's container toolkit reads the first two variables. With OPENBLAS_THREAD_TIMEOUT=4, OpenBLAS's threads sleep
# after a product, instead of keeping their cores busy for about 20 ms. Without MATMULD_TLS_CERT the service has no TLS,
# and without an API key it serves every client that can reach the port.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    MATMULD_HOST=0.0.0.0 \
    OPENBLAS_THREAD_TIMEOUT=4
EXPOSE 8080

# The service writes no files, so the user needs no home folder, and the root file system can be read-only.
USER 10001:10001

# On SIGTERM the service serves for 5 s more and finishes its requests within 30 s, so `docker stop --time` must allow
# more than 35 s.
STOPSIGNAL SIGTERM

# Checks that the process responds. GET /readyz tells a readiness probe whether the service can multiply.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/matmuld", "--healthcheck"]
ENTRYPOINT ["/usr/local/bin/matmuld"]
