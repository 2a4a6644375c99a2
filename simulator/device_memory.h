// The memory of the simulated GPUs: one range of addresses per device.
//
// Host code that touches it is stopped where the processor has memory protection keys: on a GPU it would crash, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::simulator {

/// `bytes` > 0 of a device's memory, aligned to 256, filled with 0xff and marked uninitialised; null where the device
/// has no more, or where fail_allocation() says so.
void* allocate_device_memory(int device, std::size_t bytes);

/// The same in pages that no other allocation has a part of: what other processes may be given.
void* allocate_whole_pages(int device, std::size_t bytes);

/// The file that the memory of such an allocation lives in from now on, so that other processes can map it, with a page
/// of zeros behind its pages; -1 where
/// there is none to be had, or `start` does not begin such an allocation.
int file_of_device_memory(void* start);
/// Maps the first `bytes` bytes of such a file as memory of `device`, which counts as written; null where that fails.
void* import_device_memory(int device, int file, std::size_t bytes);
/// Whether an allocation is another process's; it is free_device_memory() that takes it away again.
bool is_imported(const void* start);

/// The same for memory that the host may touch as well: whole pages, counted as written.
void* allocate_managed_memory(int device, std::size_t bytes);

/// True if `start` is where an allocation begins; it is then free again, and touching it is a fault.
bool free_device_memory(void* start);

/// True if the address is one of a device's, allocated or not.
bool is_device_address(const void* address);
/// The device of such an address.
int device_of(const void* address);
/// Size of the allocation that begins at `start`; 0 if none does.
std::size_t allocation_bytes(const void* start);
/// Bytes that the allocation around an address has left from it on; 0 outside of allocations, and of retired ones.
std::size_t bytes_from(const void* address);

/// Takes an allocation out of use and overwrites it; touching it is a fault until it is renewed, which makes it like a
/// new one. Its address stays what it was.
void retire_device_memory(void* start);
void renew_device_memory(void* start);

std::size_t free_device_bytes(int device);

/// "byte 64 past the end of an allocation of 1024 bytes", for messages.
std::string describe_device_address(std::uintptr_t address);

/// True for addresses in this program's own data: constants and static variables.
bool is_program_data(std::uintptr_t address);

void forget_order_of_device_memory();

/// While one lives in a thread, the thread may touch device memory.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

}  // namespace tandem::simulator
