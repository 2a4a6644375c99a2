#!/usr/bin/env python3
"""Checks that loops over the functions of vector_math.h and vector_activations.h become vectors, for each instruction set.

    test_vector_loops.py BUILD

Compiles one loop for each function by the options that BUILD compiles its kernels with, for x86-64 (SSE2), x86-64-v3 (AVX2) and
x86-64-v4 (AVX-512), and looks for packed multiplications. A loop without is as right, and up to eight times as slow.
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

LOOPS = {
    "exp": "vector_exp(x[i])",
    "exp_to_ends": "vector_exp_to_ends(x[i])",
    "exp_of_negative": "vector_exp_of_negative(x[i])",
    "expm1": "vector_expm1(x[i])",
    "erf": "vector_erf(x[i])",
    "log": "vector_log(x[i])",
    "log1p": "vector_log1p(x[i])",
    "log1p_to_ends": "vector_log1p_to_ends(x[i])",
    "log1p_exp": "vector_log1p_exp(x[i])",
    "tanh": "vector_tanh(x[i])",
    "pow": "vector_pow(x[i], y[i])",
    "relu": "2.5f * activations::Relu::value(x[i])",
    "relu_gradient": "2.5f * activations::Relu::gradient(x[i], y[i])",
    "gelu": "activations::Gelu::value(x[i])",
    "gelu_gradient": "activations::Gelu::gradient(x[i], y[i])",
    "silu": "activations::Silu::value(x[i])",
    "silu_gradient": "activations::Silu::gradient(x[i], y[i])",
}
WITHOUT = {("x86-64", "pow")}  # SSE2 compares no integers of 64 bits
LEVELS = "x86-64", "x86-64-v3", "x86-64-v4"
PACKED = re.compile(r"^\s+v?(mulp[sd]|fn?m(add|sub)[0-9]+p[sd])\s", re.MULTILINE)
SKIPPED = 77


def source():
    """One function for each loop."""
    lines = ['#include "tandem/kernels/activation/vector_activations.h"', "using namespace tandem::kernels::cpu;"]
    for name, value in LOOPS.items():
        lines.append(
            f'extern "C" void loop_{name}(const float* __restrict x, const float* __restrict y, float* __restrict to, long count) '
            f"{{ for (long i = 0; i < count; ++i) to[i] = {value}; }}"
        )
    return "\n".join(lines) + "\n"


def options_of(build):
    """The compiler and its options for a kernel, without the files and the instruction set."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"].endswith("/kernels/activation/gelu_cpu.cpp"):
            words = shlex.split(entry["command"])
            begin = next(i for i, word in enumerate(words) if re.search(r"(c\+\+|g\+\+|clang\+\+)[-.0-9]*$", word))
            words = words[begin : words.index("-o")]
            while "-include" in words:  # the precompiled header, which is of one instruction set
                at = words.index("-include")
                del words[at : at + 2]
            return [word for word in words if not word.startswith(("-march", "-mtune", "-Winvalid-pch"))], entry["directory"]
    sys.exit(f"{build}/compile_commands.json has no kernels/activation/gelu_cpu.cpp")


def functions_of(assembly):
    """The text of each loop."""
    parts = re.split(r"^loop_(\w+):$", assembly, flags=re.MULTILINE)
    return {name: text.split(".cfi_endproc")[0] for name, text in zip(parts[1::2], parts[2::2])}


def main():
    build = pathlib.Path(sys.argv[1])
    command, directory = options_of(build)
    target = subprocess.run([command[0], "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    if not target.startswith("x86_64") or "-O3" not in command:
        print(f"skipped: for {target.strip()}, or without -O3")
        return SKIPPED
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "loops.cpp")
        path.write_text(source())
        for level in LEVELS:
            result = subprocess.run([*command, "-w", f"-march={level}", "-S", "-o", "-", path], capture_output=True, text=True, cwd=directory)
            if result.returncode != 0:
                sys.exit(result.stderr)
            texts = functions_of(result.stdout)
            scalar = [name for name in LOOPS if not PACKED.search(texts[name]) and (level, name) not in WITHOUT]
            faults += [f"{level}: no vectors in a loop over {name}" for name in scalar]
    print("\n".join(faults) or f"{len(LOOPS)} loops, {len(LEVELS)} instruction sets: all have vectors")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
