// Shared memory of the running block: dynamic and static, with red zones and the hardware's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace tandem::simulator {

constexpr std::size_t kStaticSharedLimit = 48 * 1024;
constexpr std::size_t kSharedLimit = 227 * 1024;  // per block, where the kernel asked for more than 48 KiB

/// Lays out shared memory for a launch: the dynamic part, then static variables as kernels come to them.
void start_shared_memory(std::size_t dynamic_bytes);
/// Fills all of it with 0xff bytes, NaN in every floating dtype: blocks start with nothing.
void start_block_of_shared_memory();

/// The variable that `key` (an address that only this declaration has) stands for; all threads get the same one. Ends
/// the launch where static variables exceed 48 KiB, or all together 227 KiB.
void* shared_variable(const void* key, std::size_t bytes, std::size_t alignment, const char* name,
                      std::source_location where);
/// The dynamic part.
void* dynamic_shared_memory();

bool is_shared_address(const void* address);
/// Where in the window of shared memory an address lies, which is what descriptors of operands and the swizzle of tiles
/// go by; and back.
unsigned offset_in_shared_memory(const void* address);
char* at_shared_offset(unsigned offset);

/// "tile+68 (shared)" for messages.
std::string describe_shared(std::uintptr_t address);

void forget_order_of_shared_memory();

}  // namespace tandem::simulator
