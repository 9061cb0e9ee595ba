# Two ranks on this machine: docker run --rm -v "$PWD:/work" IMAGE horovodrun -np 2 python -m deft_horovod train.py
# docs/guide/installation.md says how it is built.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends cmake g++ make python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
# pip's index is an argument, because a torch without CUDA comes from an index of its own.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG TORCH=torch==2.13.0
RUN python3 -m venv /opt/deft && /opt/deft/bin/pip install --no-cache-dir "${TORCH}"
WORKDIR /source
COPY scripts/__init__.py scripts/places.py scripts/install_horovod.sh scripts/
COPY scripts/horovod scripts/horovod
RUN scripts/install_horovod.sh --python /opt/deft/bin/python --gpu none
COPY . .
RUN scripts/wheel.sh --python /opt/deft/bin/python --gpu none --to /wheels \
    && /opt/deft/bin/pip install --no-cache-dir /wheels/deft_horovod-*.whl \
    && /opt/deft/bin/python -c "import deft_horovod.torch"

FROM ${BASE}
# horovodrun reaches other hosts by ssh; pods of an MPIJob wait for it with sshd, and what Kubernetes
# mounts as keys everybody may read.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openssh-client openssh-server python3 \
    && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*_key* \
    && mkdir -p /run/sshd \
    && echo "StrictModes no" >/etc/ssh/sshd_config.d/mounted_keys.conf
COPY --from=build /opt/deft /opt/deft
ENV PATH=/opt/deft/bin:$PATH
WORKDIR /work
CMD ["deft-profile", "doctor"]
