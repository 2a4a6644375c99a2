#!/usr/bin/env python3
"""The whole text that programs answer bad input with, as error_messages.txt has it: what a user reads.

    check_error_messages.py [--update] PROGRAMS SCRIPTS FEATURE...

PROGRAMS is the folder of the programs, SCRIPTS that of the scripts, and FEATUREs are what the build has (MPI, ONEDNN, PNG).
--update writes the file anew: read its difference before it is committed. Each message must begin with "error: " (of scripts:
their name), be the only line that does, and come with exit code 2 (of scripts: 1 or 2). The file holds them by command, in
the order of CASES below; those that need what the build lacks are passed over.
"""
import os
import re
import resource
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib

import make_files
from run_case import environment

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "error_messages.txt")
LEAST = 60  # messages

SMALL = "cifar_train --no-run-dir --device cpu --dataset synthetic --limit-train 16 --limit-test 8 --batch-size 8 --epochs 1 "
TINY = "conv_bench --shape 2,3,6,6,8,3,3,1,1 "
NET = "train_bench --model mnist_cnn --layers 1 --in-channels 1 --image-size 8 --batch-size 4 --steps 1 --warmup 0 "

# A command, and what it needs: features of the build, or "limit:N" for a file-size limit of N bytes; "after:training" where
# training goes on, and ends with exit code 1.
CASES = [
    # Options and their values.
    ("cifar_train --lrr 0.1",),
    ("cifar_train --transmogrify",),
    ("cifar_train --learning-rate 0.1",),
    ("cifar_train vgg_lite",),
    ("cifar_train --epochs 2 --lr",),
    ("cifar_train --lr fast",),
    ("cifar_train --lr nan",),
    ("cifar_train --lr -0.1",),
    ("cifar_train --ema 1",),
    ("cifar_train --epochs -1.5",),
    ("cifar_train --lookahead 5 --lookahead-decay 1.5",),
    ("cifar_train --lookahead-power 2",),
    ("cifar_train --tta seven",),
    ("cifar_train --epochs 99999999999999999999",),
    ("cifar_train --steps 99999999999999999999",),
    ("cifar_train --batch-size 0",),
    ("cifar_train --threads 5000",),
    ("cifar_train --nesterov=maybe",),
    ("cifar_train --help=3",),
    ("cifar_train --no-check-replicas=1",),
    ("cifar_train --model vgg-lite",),
    ("cifar_train --optimizer sdg",),
    ("cifar_train --cuda-graph always",),
    (SMALL + "--cuda-graph on",),
    (SMALL + "--resident-data on",),
    ("cifar_train --augment crop,flp",),
    ("cifar_train --augment flip,flip-alternating",),
    ("cifar_train --early-stopping soon",),
    ("cifar_train --profile 3:4",),
    ("cifar_train --checkpoint-every often",),
    ("cifar_train --loss-scale auto --precision fp16",),
    ("cifar_train --precision f16",),
    ("cifar_train --device gpu",),
    ("cifar_train --device cuda", "NO-CUDA"),
    ("cifar_train --data ''",),
    # Options that do not go together.
    ("cifar_train --batch-size 8 --global-batch-size 16",),
    ("cifar_train --grad-accumulation 4 --global-batch-size 10",),
    ("cifar_train --optimizer adam --momentum 0.5",),
    ("cifar_train --nesterov --momentum 0",),
    ("cifar_train --aux-lr 0.5",),
    ("cifar_train --normalize-filters --optimizer adam",),
    ("cifar_train --param-group '*.bias'",),
    ("cifar_train --param-group '*.bias:lr=2'",),
    ("cifar_train --param-group '*.bias:momentum=1.5'",),
    ("cifar_train --param-group '*.bias:momentum=0' --optimizer adam",),
    (SMALL + "--param-group 'norm*.bias:lr-factor=64'",),
    (SMALL + "--param-group '*:freeze-step=1'",),
    ("cifar_train --schedule one-cycle --warmup-epochs 1",),
    ("cifar_train --schedule cosine --warmup-epochs 5 --epochs 5",),
    ("cifar_train --schedule linear --warmup-epochs 1 --warmup-steps 5",),
    ("cifar_train --schedule linear --warmup-start-factor 0.2",),
    ("cifar_train --final-lr-factor 0.1",),
    (SMALL + "--schedule linear --warmup-steps 3 --epochs 1.5",),
    ("cifar_train --no-run-dir --log-norms",),
    ("cifar_train --no-run-dir --log-every 2",),
    ("cifar_train --no-run-dir --resume auto",),
    ("cifar_train --no-run-dir --histograms",),
    ("cifar_train --no-run-dir --profile steps=1:2",),
    ("cifar_train --trace t.html",),
    ("cifar_train --no-run-dir --keep 2",),
    ("cifar_train --epochs 2 --steps 9",),
    ("cifar_train --best-by validation_loss",),
    ("cifar_train --validation-split 0.1 --best-by test_loss",),
    ("cifar_train --early-stopping 3 --best-by train_loss",),
    ("cifar_train --lookahead 5 --ema 0.99",),
    ("cifar_train --dataset synthetic --data .",),
    ("cifar_train --log out.bin --save-weights out.bin",),
    ("cifar_train --autotune --conv-impl fused",),
    ("cifar_train --device cpu --conv-impl cudnn", "NO-CUDA"),
    ("cifar_train --conv-impl onednn --precision fp16",),
    ("cifar_train --dataset synthetic --drop-path 0.5",),
    ("cifar_train --dataset synthetic --width 0.5",),
    (SMALL + "--augment crop-reflect=32",),
    (SMALL + "--augment cutout-inside=33",),
    (SMALL + "--drop-last --batch-size 32",),
    (SMALL + "--validation-split 0.001",),
    # Config files.
    ("cifar_train --config none.toml",),
    ("cifar_train --config directory.toml",),
    ("cifar_train --config unknown_key.toml",),
    ("cifar_train --config near_key.toml",),
    ("cifar_train --config bad_value.toml",),
    ("cifar_train --config bad_type.toml",),
    ("cifar_train --config section.toml",),
    ("cifar_train --config both_batches.toml",),
    ("cifar_train --config two_lines.toml",),
    ("cifar_train --config huge.toml",),
    # Data.
    ("cifar_train --dataset mnist",),
    ("cifar_train --data nowhere",),
    ("cifar_train --data plain_file",),
    ("cifar_train --data empty",),
    ("cifar_train --data cifar_missing",),
    ("cifar_train --data cifar_truncated",),
    ("cifar_train --data cifar_bad_label",),
    ("cifar_train --dataset mnist --data mnist_magic",),
    ("cifar_train --dataset mnist --data mnist_counts",),
    ("cifar_train --dataset mnist --data mnist_truncated",),
    ("cifar_train --dataset mnist --data mnist_gzip",),
    ("cifar_train --dataset mnist --data mnist_not_square",),
    ("cifar_train --dataset mnist --data mnist_two_sizes",),
    # Weights and checkpoints.
    (SMALL + "--load-weights none.safetensors",),
    (SMALL + "--load-weights empty",),
    (SMALL + "--load-weights other_net.safetensors",),
    (SMALL + "--load-weights named.safetensors",),
    (SMALL + "--load-weights truncated.safetensors",),
    (SMALL + "--load-weights oversized.safetensors",),
    (SMALL + "--load-weights no_json.safetensors",),
    (SMALL + "--load-weights tiny.safetensors",),
    ("cifar_train --dataset synthetic --run-dir run_of_nobody --resume none",),
    ("cifar_train --dataset synthetic --limit-train 16 --limit-test 8 --batch-size 8 --run-dir run_of_nobody --resume empty",),
    ("cifar_train --dataset synthetic --run-dir plain_file",),
    # What is written.
    (SMALL + "--save-weights nowhere/w.safetensors",),
    (SMALL + "--trace nowhere/t.json",),
    (SMALL + "--save-weights empty",),
    (SMALL + "--save-weights /dev/null",),
    (SMALL + "--model mnist_cnn --layers 1 --save-weights w.safetensors", "limit:4096", "after:training"),
    (SMALL + "--log nowhere/run.jsonl",),
    (SMALL + "--log empty",),
    (SMALL + "--log notes.txt",),
    (SMALL + "--log /dev/full",),
    (SMALL + "--tuning-file none.json",),
    (SMALL + "--autotune --tuning-file notes.txt",),
    (SMALL + "--autotune --tuning-file /none/t.json",),
    (SMALL + "--comm-costs none.json",),
    (SMALL + "--tune-comm --comm-costs notes.txt",),
    (TINY + "--groups 1 --json nowhere/b.json",),
    # tandem and its commands.
    ("tandem trian",),
    ("tandem --epochs 3",),
    ("tandem completion",),
    ("tandem completion csh",),
    ("tandem help trian",),
    ("tandem report",),
    ("tandem_predict a.png",),
    ("tandem_predict --weights named.safetensors",),
    ("tandem_predict --weights none.safetensors a.png",),
    ("tandem_predict --weights named.safetensors a.png",),
    ("tandem_predict --weights named.safetensors --top 0 a.png",),
    ("tandem_predict --weights named.safetensors --tta seven a.png",),
    ("tandem_predict --weights weights.safetensors none.png",),
    ("tandem_predict --weights weights.safetensors notes.txt",),
    ("tandem_predict --weights weights.safetensors cut.png", "PNG"),
    ("tandem_report",),
    ("tandem_report none",),
    ("tandem_report empty",),
    ("tandem_report plain_file",),
    ("tandem_report --compar x",),
    ("tandem_report run --compare nowhere/page.html",),
    ("tandem_doctor --jsn",),
    ("tandem_doctor 12345",),
    ("tandem_doctor --mpirun ''",),
    # Benchmarks.
    ("conv_bench --groups 3",),
    ("conv_bench --layers vgg_lit",),
    ("conv_bench --shape 1,2,3",),
    ("conv_bench --shape 1,1,2,2,1,5,5,1,0",),
    (TINY + "--passes forward",),
    (TINY + "--precision tf32",),
    (TINY + "--cache warm",),
    (TINY + "--json r --svg r",),
    (TINY + "--serve --json r",),
    (NET + "--profile --serve",),
    (NET + "--cuda-graph on",),
    (NET + "--model vgg",),
    (NET + "--lr fast",),
    (NET + "--batch none.safetensors",),
    (NET + "--batch named.safetensors",),
    ("allreduce_bench --collective allgather",),
    ("allreduce_bench --collective send_receive",),
    ("allreduce_bench --collective barrier --roofline",),
    ("allreduce_bench --csv nowhere/rows.csv",),
    ("allreduce_bench --connectivity",),
    ("allreduce_bench --connectivity --rounds 3",),
    ("allreduce_bench --iface eth0",),
    ("cifar_train --iface eth0 --dataset synthetic",),
    ("allreduce_bench --iface ''",),
    ("cifar_train --iface '' --dataset synthetic",),
    ("sgd_lab --break sync-gard",),
    ("sgd_lab --ranks 1",),
    ("study run optimisers",),
    ("study rnu",),
    ("study all --seeds 0",),
    ("study run none.toml",),
    ("study run study_key.toml",),
    ("study run study_flag.toml",),
    ("study run study_plot.toml",),
    # Data scripts.
    ("get_data.sh",),
    ("get_data.sh imagenet",),
    ("get_data.sh cifar10 --form x",),
    ("get_data.sh cifar10 --from",),
    ("get_data.sh cifar10 --dir data --from none.tar.gz",),
    ("get_data.sh cifar10 --dir data --from empty",),
    ("get_data.sh cifar10 --dir data --from notes.txt",),
    ("get_data.sh cifar10 --dir data --from notes.txt --no-verify",),
    ("get_data.sh mnist --dir data --from empty",),
    ("get_data.sh cifar10 --dir plain_file",),
]


def png(width, height):
    """A grey PNG file."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(width) for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_inputs(programs):
    """The files of make_files.py, here, and what a run leaves."""
    make_files.make_files_in("files")
    for name in os.listdir("files"):
        os.rename(os.path.join("files", name), name)
    os.rmdir("files")
    with open("huge.toml", "w") as file:
        file.write("# no settings\n" * 100000)
    with open("cut.png", "wb") as file:
        file.write(png(9, 9)[:40])
    with open("w.safetensors", "w") as file:
        file.write("weights of before")
    for name, lines in (("key", "quesion = \"?\"\n[grid]\nlr = [1, 2]"), ("flag", "[grid]\nbatchsize = [16, 32]"),
                        ("plot", "plot = \"line seconds over epochs\"\n[grid]\nlr = [1, 2]")):
        with open(f"study_{name}.toml", "w") as file:
            file.write(f"title = \"A study\"\n{lines}\n")
    run = SMALL.replace("--no-run-dir", "--run-dir run") + "--model mnist_cnn --layers 1 --save-weights weights.safetensors"
    done = answer(programs, None, run, ())
    if done.returncode != 0:
        sys.exit(f"FAILED: {run}: {done.stderr}")


def answer(programs, scripts, command, needs):
    words = shlex.split(command)
    folder = scripts if words[0].endswith(".sh") else programs
    words[0] = os.path.join(folder, words[0])
    limits = [int(need.split(":")[1]) for need in needs if need.startswith("limit:")]
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limits[0], limits[0]))) if limits else None
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                          preexec_fn=limit, env=environment(), timeout=100)


def message_of(programs, scripts, command, needs):
    """What was said, or the reason why that is no proper answer."""
    done = answer(programs, scripts, command, needs)
    is_script = command.split()[0].endswith(".sh")
    is_late = "after:training" in needs
    if done.returncode not in ((1, 2) if is_script else (1,) if is_late else (2,)):
        sys.exit(f"FAILED: {command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [line for line in done.stderr.splitlines() if is_script or line.startswith("error: ")]
    if is_late and lines:
        return "\n".join(line for line in done.stderr.splitlines() if line.startswith(("error: ", "warning: ")))
    if not lines or (not is_script and (len(lines) != 1 or done.stderr.splitlines()[0] != lines[0])):
        sys.exit(f"FAILED: {command}: not one error, in the first line:\n{done.stdout}{done.stderr}")
    return "\n".join(lines)


def parsed(text):
    """{command: message} of the file."""
    blocks = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return {block.split("\n", 1)[0]: block.split("\n", 1)[1].rstrip("\n") for block in blocks}


def main():
    update = "--update" in sys.argv
    programs, scripts, *features = [os.path.realpath(word) if i < 2 else word for i, word in
                                    enumerate(word for word in sys.argv[1:] if word != "--update")]
    if "CUDA" not in features:
        features.append("NO-CUDA")
    with open(RECORDED) as file:
        header, recorded = file.read().split("\n\n", 1)
    recorded = parsed(recorded)
    if not update and len(recorded) < LEAST:
        sys.exit(f"FAILED: {RECORDED} has {len(recorded)} messages, at least {LEAST} are wanted")
    found, problems = {}, []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_inputs(programs)
        for command, *needs in CASES:
            if any(need.split(":")[0] not in features + ["limit", "after"] for need in needs):
                if command in recorded:
                    found[command] = recorded[command]
                continue
            found[command] = message_of(programs, scripts, command, needs)
            if found[command] != recorded.get(command):
                problems.append(f"$ {command}\n  is:  {found[command]}\n  was: {recorded.get(command, 'not recorded')}")
    if update:
        with open(RECORDED, "w") as file:
            file.write(header + "\n" + "".join(f"\n$ {command}\n{text}\n" for command, text in found.items()))
        return
    problems += [f"$ {command}\n  is recorded, and no case any more" for command in recorded if command not in found]
    if problems:
        sys.exit("FAILED: read these, and if they are meant, record them by --update:\n" + "\n".join(problems))
    print(f"{len(found)} messages read as recorded")


if __name__ == "__main__":
    main()
