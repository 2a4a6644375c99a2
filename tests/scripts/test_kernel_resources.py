#!/usr/bin/env python3
"""Tests of kernel_resources.py and its arithmetic of occupancy.

    test_kernel_resources.py SCRIPTS [FAULT_PROBE]

FAULT_PROBE, of the simulated build, writes down launches for it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

LOG = """\
ptxas info    : Compiling entry function '_ZN6tandem39_GLOBAL__N__fcc6ed7b_7_fill_cu_e5b8070f4fillIfEEvPT_' for 'sm_80'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compiling entry function '_ZN6tandem39_GLOBAL__N__fcc6ed7b_7_fill_cu_e5b8070f4fillIfEEvPT_' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compiling entry function '_ZN6tandem39_GLOBAL__N__fcc6ed7b_7_fill_cu_e5b8070f4fillIdEEvPT_' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
ptxas info    : Compiling entry function '_ZN6tandem5scaleEPf' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers
"""
LAUNCHES = """\
fill.cu\ttandem::fill<float>\t256\t0
fill.cu\ttandem::fill<float>\t256\t166912
fill.cu\ttandem::fill<float>\t32\t0
other.cu\ttandem::other<float>\t256\t0
"""
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}")


# Worked out by hand from the rules; cuda_occupancy.h of CUDA 13.0 allows the same numbers of blocks.
OCCUPANCIES = [
    # architecture, threads, registers, shared bytes, barriers; percent, limits
    (("sm_90", 256, 32, 0), 100, ["warps", "registers"]),
    (("sm_90", 256, 64, 0), 50, ["registers"]),  # 65,536 / (256 * 64) = 4 blocks of 8 warps
    (("sm_80", 256, 64, 0), 50, ["registers"]),
    (("sm_90", 256, 33, 0), 75, ["registers"]),  # as 40: 16,384 / 1,280 = 12 warps of each quarter, 6 blocks of 8
    (("sm_90", 96, 40, 0), 75, ["registers"]),  # 48 warps, 16 blocks of 3
    (("sm_90", 32, 16, 0), 50, ["blocks"]),
    (("sm_90", 1, 16, 0), 50, ["blocks"]),
    (("sm_90", 1024, 65, 0), 0, ["registers"]),  # 32 warps of 72 * 32 do not fit
    (("sm_90", 384, 168, 227 * 1024), 18.75, ["registers", "shared memory"]),  # 12 warps of 64
    (("sm_90", 128, 32, 56 * 1024), 25, ["shared memory"]),  # with the reserved one 57 KiB: four times in 228
    (("sm_90", 128, 32, 56 * 1024 + 1), 18.75, ["shared memory"]),
    (("sm_90", 128, 32, 22323), 56.25, ["shared memory"]),  # a tenth of 228 KiB, but allocated by 128 bytes
    (("sm_90", 128, 32, 227 * 1024 + 1), 0, ["shared memory"]),
    (("sm_80", 128, 32, 40 * 1024), 25, ["shared memory"]),  # 41 KiB: four times in 164
    (("sm_80", 128, 32, 163 * 1024), 6.25, ["shared memory"]),
    (("sm_80", 128, 32, 163 * 1024 + 1), 0, ["shared memory"]),
    (("sm_90a", 128, 32, 0, 16), 25, ["barriers"]),  # 64 barriers
    (("sm_90", 1025, 16, 0), 0, ["warps"]),
]


def check_occupancy(occupancy):
    for block, percent, limits in OCCUPANCIES:
        found = occupancy(*block)
        check(found == (percent, limits), f"occupancy{block}: {found}, not {percent} by {limits}")


def table(scripts, *arguments):
    result = subprocess.run([sys.executable, scripts / "kernel_resources.py", *arguments], capture_output=True, text=True)
    return result.returncode, [line.split() for line in result.stdout.splitlines()], result.stdout


def check_table(scripts, folder):
    log, launches = folder / "build.log", folder / "launches.txt"
    log.write_text(LOG)
    launches.write_text(LAUNCHES)
    code, rows, text = table(scripts, log)
    check(code == 0 and rows[1] == ["fill", "sm_80", "1", "64", "512", "0"], f"without launches: {code}\n{text}")
    code, rows, text = table(scripts, log, "--launches", launches)
    check(code == 0, f"with launches: {code}\n{text}")
    # 166,912 bytes and 512 static ones do not fit on sm_80. The instance for double has more registers, but was not launched.
    check(rows[1] == "fill sm_80 1 64 512 0 1 32-256 0 50 registers, blocks".split(), f"sm_80:\n{text}")
    check(rows[2] == "fill sm_90 2 255 512 0 1 32-256 0-166,912 12.5-75 shared memory".split(), f"sm_90:\n{text}")
    check(rows[3] == "scale sm_90 1 16 0 0 0 not launched".split(), f"not launched:\n{text}")
    check("1 instances launched; 1 others were, which the log does not hold" in text, text)
    code, rows, text = table(scripts, log, "--launches", launches, "--markdown")
    check(all(line.count("|") == 12 for line in text.splitlines()[:5]), f"Markdown:\n{text}")
    log.write_text(LOG.replace("0 bytes spill loads", "4 bytes spill loads"))
    check(table(scripts, log, "--launches", launches)[0] == 1, "spills are passed over")


def check_launches(read_launches, probe, folder):
    written = folder / "written.txt"
    environment = {**os.environ, "TANDEM_SIMULATOR_COVERAGE": str(written)}
    subprocess.run([probe, "--correct"], capture_output=True, check=True, env=environment)
    launches = read_launches(written)
    for name, blocks in (("dynamic_shared", {(256, 60000)}), ("matmul", {(256, 0)}), ("block_sums", {(128, 0)})):
        found = launches.get(f"tandem::test::{name}")
        check(found == blocks, f"launches of {name}: {found}, not {blocks}")


def main():
    scripts = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(scripts))
    sys.dont_write_bytecode = True
    import kernel_resources
    import occupancy

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_occupancy(occupancy.occupancy)
        check_table(scripts, folder)
        if len(sys.argv) > 2:
            check_launches(kernel_resources.read_launches, sys.argv[2], folder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
