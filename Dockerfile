# Tandem in a container, for CPUs: docker build -t tandem . && docker run --rm tandem
# docs/how-to/containers.md tells what each line is for. `scripts/check_all.sh container` runs its RUN and CMD lines without Docker.
FROM debian:bookworm
COPY . /tandem
WORKDIR /tandem
RUN scripts/setup.sh
RUN scripts/build.sh portable-shared && cmake --install build/portable-shared --prefix /usr/local && ldconfig
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1
CMD exec mpirun -np 2 tandem train --dataset fashion-mnist --epochs 3
