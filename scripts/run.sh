#!/usr/bin/env bash
# The main job in one command: installs what is missing, builds, gets data, trains on 2 ranks.
# Arguments go through to cifar_train: scripts/run.sh --epochs 2 --model vgg_lite
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
build=$(scripts/build.sh "" cifar_train)
train="$build/apps/cifar_train"
"$train" --print-config "$@" >/dev/null  # what is wrong with the arguments is said before anything is downloaded
case " $* " in  # questions need neither data nor ranks
  *" --help "* | *" -h "* | *" --version "* | *" --print-config "*) exec "$train" "$@" ;;
esac

# CIFAR-10 if it is at hand or can be downloaded, else Fashion-MNIST from Debian's package, else synthetic images.
arguments=("$@") length=(--epochs 3)
case " $* " in *" --steps"*) length=() ;; esac
case " $* " in
  *" --dataset"* | *" --data "* | *" --data="* | *" --config"*) ;;
  *)
    if [ -e "${TANDEM_CIFAR10:-datasets/cifar10}/data_batch_1.bin" ]; then
      arguments=(--dataset cifar10 --data "${TANDEM_CIFAR10:-datasets/cifar10}" "$@")
    elif scripts/get_data.sh cifar10; then
      arguments=(--dataset cifar10 "$@")
    elif scripts/get_data.sh fashion-mnist; then
      arguments=(--dataset fashion-mnist "${length[@]}" "$@")
    else
      echo "run: no data could be had; training on synthetic images" >&2
      arguments=(--dataset synthetic "${length[@]}" "$@")
    fi
    ;;
esac

# Without mpirun, ranks are threads of one process.
case " $* " in
  *" --replicas"*) exec "$train" "${arguments[@]}" ;;
esac
if ! command -v mpirun >/dev/null; then
  echo "run: no mpirun here, so two ranks in one process: $train --replicas 2 ${arguments[*]}" >&2
  exec "$train" --replicas 2 "${arguments[@]}"
fi
# As root, and with more ranks than cores, Open MPI wants to be told; what the user says goes before.
while IFS='=' read -r name value; do
  case "$name" in [A-Z]*) [ -n "${!name+set}" ] || export "$name=$value" ;; esac
done <scripts/mpi.env
# mpirun puts pipes behind the ranks: tell them that a terminal is at the other end.
case " $* " in
  *" --progress"*) ;;
  *) [ ! -t 1 ] || [ ! -t 2 ] || arguments+=(--progress bar) ;;
esac
echo "run: mpirun -np 2 $train ${arguments[*]}" >&2
exec mpirun -np 2 "$train" "${arguments[@]}"
