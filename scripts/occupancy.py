"""How many warps of a kernel fit on a multiprocessor at once: what CUDA's occupancy calculator computes.

Sizes from the tables of compute capabilities in the CUDA C++ Programming Guide ("Technical Specifications per Compute
Capability"); what is allocated in which units from cuda_occupancy.h of the CUDA toolkit.
"""
import collections

KIB = 1024
WARP_THREADS = 32
MOST_BLOCK_THREADS = 1024
REGISTERS = 65536  # of a multiprocessor
PARTITIONS = 4  # of a multiprocessor; a warp's registers lie in one of them
REGISTER_UNIT = 256  # registers of a warp are allocated in these
SHARED_UNIT = 128
RESERVED_SHARED = KIB  # of every block, for the system: a block has at most all but this

# Barriers count from compute capability 9.0 on.
Multiprocessor = collections.namedtuple("Multiprocessor", "warps blocks barriers shared")
MULTIPROCESSORS = {
    "sm_80": Multiprocessor(warps=64, blocks=32, barriers=None, shared=164 * KIB),
    "sm_90": Multiprocessor(warps=64, blocks=32, barriers=64, shared=228 * KIB),
}
MULTIPROCESSORS["sm_90a"] = MULTIPROCESSORS["sm_90"]

Occupancy = collections.namedtuple("Occupancy", "percent limits")  # limits: what allows no block more


def divide_up(a, b):
    return -(-a // b)


def round_up(a, unit):
    return divide_up(a, unit) * unit


def blocks_by_registers(block_warps, registers):
    of_warp = round_up(registers * WARP_THREADS, REGISTER_UNIT)
    return REGISTERS // PARTITIONS // of_warp * PARTITIONS // block_warps


def occupancy(architecture, threads, registers, shared_bytes, barriers=0):
    """Of blocks of `threads` with `registers` per thread, `shared_bytes` (static and dynamic) and barriers; 0 percent where
    such a block cannot be launched."""
    has = MULTIPROCESSORS[architecture]
    block_warps = divide_up(threads, WARP_THREADS)
    blocks = {
        "warps": has.warps // block_warps if threads <= MOST_BLOCK_THREADS else 0,
        "registers": blocks_by_registers(block_warps, registers),
        "shared memory": has.shared // round_up(shared_bytes + RESERVED_SHARED, SHARED_UNIT),
        "blocks": has.blocks,
    }
    if barriers and has.barriers:
        blocks["barriers"] = has.barriers // barriers
    fewest = min(blocks.values())
    limits = [name for name, most in blocks.items() if most == fewest]
    return Occupancy(100 * fewest * block_warps / has.warps, limits)
